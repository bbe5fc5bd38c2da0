package models

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/machine"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
	"codea1/gpuworker/torch"
)

// Say prints the demand of a role's model.
type Say func(role events.Role, demand string)

// CheckTraining says the demand of every model of a training, and returns an error if this
// machine has too little memory for them. run is as in Uses.
func (c *Config) CheckTraining(run string, say Say) error {
	if c.Engine.Engine == gpuworker.EngineTorch {
		return c.sayTorch(say)
	}
	return c.CheckFit(c.Uses(run), say)
}

// sayTorch says the memory of the torch models that are on this machine already. The
// engine compares it with the memory of its device.
func (c *Config) sayTorch(say Say) error {
	for _, role := range c.Models.Roles() {
		if c.OnServer(role) || !exists(filepath.Join(c.Dir(role), "config.json")) {
			continue
		}
		demand, err := torch.ReadDemand(c.Dir(role), c.torchWork(Use{Role: role, Samples: true, Trains: c.trains(role)}))
		if err != nil {
			return fmt.Errorf("--%s-model: %w", role, err)
		}
		say(role, demand.String())
	}
	return nil
}

// CheckFit says the memory and time that models need before they are loaded. It
// returns an error if they need more memory than the machine has available.
func (c *Config) CheckFit(uses []Use, say Say) error {
	var needed uint64
	var demands []string
	for _, use := range uses {
		flag := fmt.Sprintf("--%s-model", use.Role)
		if _, err := os.Stat(use.Dir); errors.Is(err, fs.ErrNotExist) {
			return commandline.Wrong(fmt.Errorf("%s: there is no checkpoint directory %s", flag, use.Dir))
		}
		demand, err := tiny.ReadDemand(use.Dir, c.Work(use.Role))
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		if !use.Samples {
			demand.Sampling = 0
		}
		if !use.Trains {
			demand.Training = 0
		}
		say(use.Role, demand.String())
		needed += demand.Sampling + demand.Training
		demands = append(demands, fmt.Sprintf("%s %s: %s", flag, use.Dir, demand))
	}
	available, known := machine.AvailableMemory(os.DirFS("/"))
	if !known || needed <= available {
		return nil
	}
	return fmt.Errorf("%s; this machine has %s of memory available: take a smaller model, or give each stage a machine of its own",
		strings.Join(demands, "; "), machine.Bytes(available))
}

// StepTime returns the time of computing for one step of the embedded engine, if every
// completion has its longest length.
func (c *Config) StepTime() (time.Duration, error) {
	var sum time.Duration
	for _, role := range c.Models.Roles() {
		var demand tiny.Demand
		var err error
		if dir := c.Dir(role); dir == "" {
			demand, err = tiny.ShippedDemand(role, c.Work(role))
		} else if demand, err = tiny.ReadDemand(dir, c.Work(role)); err != nil {
			err = fmt.Errorf("--%s-model: %w", role, err)
		}
		if err != nil {
			return 0, err
		}
		sum += demand.Step
	}
	return sum, nil
}
