package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
	"codea1/gpuworker/torch"
)

// modelUse is a model of a user in a process.
type modelUse struct {
	role            events.Role
	dir             string // with the checkpoint
	samples, trains bool
}

// modelUses returns the models of a process that samples and trains both roles with
// the embedded engine, without those that come with the program. run is the directory of a run that has
// begun; empty for none.
func (s *RunSettings) modelUses(run string) []modelUse {
	var uses []modelUse
	if s.Engine.Engine != gpuworker.EngineTiny {
		return nil
	}
	for _, role := range s.models().Roles() {
		dir := s.model(role)
		if dir == "" || s.onServer(role) {
			continue
		}
		if run != "" {
			if start := rundir.Start(run, role); exists(start) {
				dir = start
			}
		}
		uses = append(uses, modelUse{role: role, dir: dir, samples: true, trains: s.trains() && !s.models().Frozen(role)})
	}
	return uses
}

// trains reports whether the run has steps.
func (s *RunSettings) trains() bool { return s.steps(s.Curriculum.ProblemsPerStep) > 0 }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// stageModels returns the models of a user in a process of one stage.
func (s *RunSettings) stageModels(stage, run string) []modelUse {
	for _, use := range s.modelUses(run) {
		use.trains, use.samples = stage == events.TrainerStage(use.role).Name, false
		for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
			use.samples = use.samples || stage == events.RolloutStage(role).Name && s.models().Policy(role) == use.role
		}
		if use.samples || use.trains {
			return []modelUse{use}
		}
	}
	return nil
}

// model returns the checkpoint directory that a role starts from; empty for the one
// that comes with the program.
func (s *RunSettings) model(role events.Role) string {
	if role == events.RoleCode {
		return s.Models.CodeModel
	}
	return s.Models.TestModel
}

// work returns the work of a role's model in one step.
func (s *RunSettings) work(role events.Role) tiny.Work {
	c := &s.Curriculum
	work := tiny.Work{Prompts: c.ProblemsPerStep, Samples: c.Answers, Trained: c.ProblemsPerStep * c.Answers, Tokens: c.CodeTokens, Reference: s.Training.KL > 0}
	if role == events.RoleTest {
		work.Prompts, work.Samples, work.Trained, work.Tokens = c.ProblemsPerStep*c.Answers, c.Suites, c.ProblemsPerStep*c.Suites, c.TestTokens
	}
	return work
}

// torchWork is work for the torch engine.
func (s *RunSettings) torchWork(use modelUse) torch.Work {
	work, flags := s.work(use.role), &s.Engine
	return torch.Work{
		Samples: use.samples, Trains: use.trains, Tokens: work.Tokens, Together: min(rolloutBatch, work.Prompts) * work.Samples, Reference: work.Reference,
		ReferenceOn: flags.Reference, OptimizerState: flags.OptimizerState, Adapter: flags.LoRARank > 0, GPUs: flags.TrainGPUs,
		VLLMMemory: flags.VLLMShare(),
	}
}

// sayTorch says the memory of the torch models that are on this machine already. The
// engine compares it with the memory of its device.
func (s *RunSettings) sayTorch(say func(role events.Role, demand string)) error {
	for _, role := range s.models().Roles() {
		if s.onServer(role) || !exists(filepath.Join(s.model(role), "config.json")) {
			continue
		}
		demand, err := torch.ReadDemand(s.model(role), s.torchWork(modelUse{role: role, samples: true, trains: s.trains() && !s.models().Frozen(role)}))
		if err != nil {
			return fmt.Errorf("--%s-model: %w", role, err)
		}
		say(role, demand.String())
	}
	return nil
}

// checkModels logs the memory and time that models need before they are loaded. It
// returns an error if they need more memory than the machine has available.
func (s *RunSettings) checkModels(uses []modelUse, say func(role events.Role, demand string)) error {
	var needed uint64
	var demands []string
	for _, use := range uses {
		flag := fmt.Sprintf("--%s-model", use.role)
		demand, err := tiny.ReadDemand(use.dir, s.work(use.role))
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		if !use.samples {
			demand.Sampling = 0
		}
		if !use.trains {
			demand.Training = 0
		}
		say(use.role, demand.String())
		needed += demand.Sampling + demand.Training
		demands = append(demands, fmt.Sprintf("%s %s: %s", flag, use.dir, demand))
	}
	available, known := tiny.AvailableMemory(os.DirFS("/"))
	if !known || needed <= available {
		return nil
	}
	return fmt.Errorf("%s; this machine has %s of memory available: take a smaller model, or give each stage a machine of its own",
		strings.Join(demands, "; "), tiny.Bytes(available))
}
