package models

import (
	"context"
	"time"

	"codea1/events"
	"codea1/events/outbox"
	"codea1/events/rundir"
	"codea1/events/services"
	"codea1/events/stage"
	"codea1/gpuworker"
)

const (
	// RolloutBatch is the number of groups that one call of an engine samples.
	RolloutBatch = 32
	// RolloutsAtOnce keeps an engine busy, which samples one batch at a time:
	// meanwhile the outbox stores and the bus takes another one.
	RolloutsAtOnce = 2
)

// StartRollout starts the stage that samples from a role's model, and the follower
// that loads each new version of the model.
func (s *Set) StartRollout(ctx context.Context, g *services.Group, role events.Role) error {
	p := s.Process
	policy, err := s.openPolicy(ctx, g, role)
	if err != nil {
		return err
	}
	name := events.RolloutStage(role).Name
	sampled, err := p.OpenOutbox(name)
	if err != nil {
		return err
	}
	template := func() (*gpuworker.Prompt, error) { return s.Sampling.Prompt(role) }
	if s.Models.Policy(role) != role {
		template = s.Sampling.BlindPrompt
	}
	prompt, err := template()
	if err != nil {
		return err
	}
	rollout, err := gpuworker.NewRollout(gpuworker.RolloutConfig{
		Role: role, Policy: policy, Source: p.Source(name), Prompt: prompt,
		TopP: s.Sampling.TopP, TopK: s.Sampling.TopK, Logger: p.Logger.With("role", role),
	})
	if err != nil {
		return err
	}
	config := stage.Config{
		Name: name, TextsOnly: true, Handler: outbox.Handler(sampled, rollout.Makes(), rollout.Handle),
		Concurrency: RolloutsAtOnce, Batch: RolloutBatch, Linger: 5 * time.Millisecond,
	}
	if s.OnServer(role) {
		config = batchForServer(config, s.Engine.ServerRequests)
	}
	return p.StartWorker(g, config)
}

// StartTrainer starts the one trainer of a role's model, for the steps of the run.
func (s *Set) StartTrainer(ctx context.Context, g *services.Group, role events.Role, steps int) error {
	p := s.Process
	name := events.TrainerStage(role).Name
	lease, err := p.Lease(ctx, g, name)
	if err != nil {
		return err
	}
	learner, err := s.open(ctx, role, Use{Role: role, Trains: true})
	if err != nil {
		return err
	}
	remote, err := s.remote(role)
	if err != nil {
		return err
	}
	if remote != nil {
		remote.Confirm = lease.Confirm
	}
	meter, err := p.Meter(name)
	if err != nil {
		return err
	}
	trainer, err := gpuworker.NewTrainer(gpuworker.TrainerConfig{
		Bus: p.Bus, Learner: gpuworker.Leased(learner, lease), Run: p.Run, Role: role, Shared: s.Models.Shared(), Source: p.Source(name),
		Checkpoints: rundir.Checkpoints(p.Dir, role), Initial: rundir.Start(p.Dir, role), Steps: steps,
		Hyper: s.Hyperparameters(role, steps), KeepLast: s.Flags.KeepCheckpoints, KeepEvery: s.Flags.KeepEvery,
		Remote: remote, Turns: s.turns, Second: role == events.RoleTest, Meter: meter, Logger: p.Logger.With("role", role),
	})
	if err != nil {
		return err
	}
	g.Go(meter.Run)
	p.Serve(g, name, trainer.Run)
	return nil
}
