package process

import (
	"errors"
	"fmt"

	"codea1/events/outbox"
	"codea1/events/rundir"
	"codea1/events/services"
	"codea1/events/stage"
)

// maxReplicas bounds the replicas of a stage that share a run directory: each has its
// own outbox there.
const maxReplicas = 256

// OpenOutbox opens the first outbox of a stage that no other replica has open.
// A replica that starts takes over the outbox of one that died, and publishes
// its outputs.
func (p *Process) OpenOutbox(name string) (*outbox.Outbox, error) {
	for n := range maxReplicas {
		box, err := outbox.Open(rundir.Outbox(p.Dir, name, n), outbox.Options{Logger: p.Logger.With("outbox", name)})
		if errors.Is(err, outbox.ErrInUse) {
			continue
		}
		if err == nil {
			p.OnClose(box.Close)
		}
		return box, err
	}
	return nil, fmt.Errorf("%d replicas of %s have an outbox in %s already; more are not supported", maxReplicas, name, p.Dir)
}

// identify sets how a stage appears on the bus, in metrics and in the log.
func (p *Process) identify(config *stage.Config) {
	config.Logger, config.Registerer = p.Logger.With("stage", config.Name), p.Metrics
	config.Bus, config.Run, config.Instance = FirstCounts{p.Bus, config.Logger}, p.Run, p.Instance
	config.HeartbeatEvery = HeartbeatEvery
}

// Meter returns the meter of a stage that is no worker.
func (p *Process) Meter(name string) (*stage.Meter, error) {
	config := stage.Config{Name: name}
	p.identify(&config)
	return stage.NewMeter(config)
}

// StartWorker starts a worker, which consumes the events that the topology says.
func (p *Process) StartWorker(g *services.Group, config stage.Config) error {
	worker, ok := p.Models.Stage(config.Name)
	if !ok {
		return fmt.Errorf("the run has no stage %s", config.Name)
	}
	config.Types = worker.Consumes
	p.identify(&config)
	config.AckWait, config.HoldDeadLetters = p.Delivery.AckWait, p.Delivery.HoldDeadLetters
	running, err := stage.New(config)
	if err != nil {
		return err
	}
	if p.Probe != nil {
		p.Probe.Watch(config.Name, running.Health)
	}
	g.Go(running.Run)
	return nil
}
