package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/consumers/evaluation"
	"codea1/consumers/execution"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/outbox"
	"codea1/events/stage"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
)

const (
	heartbeatEvery = 5 * time.Second
	// rolloutBatch is the number of groups that one call of an engine samples.
	rolloutBatch = 32
	// rolloutsAtOnce keeps an engine busy, which samples one batch at a time:
	// meanwhile the outbox stores and the bus takes another one.
	rolloutsAtOnce = 2
	// rewardsBatch is the number of groups that are rewarded between two requests
	// to the bus.
	rewardsBatch = 8
	// maxReplicas bounds the replicas of a stage that share a run directory:
	// each has its own outbox there.
	maxReplicas = 256
)

// station is what a process gives to the stages of a run that it holds: all of
// them under train, one under stage. The stages share nothing else.
type station struct {
	run      string       // the run's name on the bus
	dir      string       // the run directory, absolute
	settings *RunSettings // of the run
	problems int          // training problems
	instance string       // tells this process from others that hold the same stage
	alone    bool         // no other process owns parts of the run: nothing has to be leased
	patient  bool         // wait for the end of a present owner of what is leased
	leaseTTL time.Duration
	bus      events.Broker
	metrics  *prometheus.Registry
	probe    *stage.Probe // hears what runs here; nil for nobody
	logger   *slog.Logger

	closers []func() error // in the order of opening
}

// owns remembers what close has to close.
func (s *station) owns(closer func() error) { s.closers = append(s.closers, closer) }

// close releases everything in the reverse order of opening.
func (s *station) close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// source is a stage's name in the events it makes here.
func (s *station) source(stage string) string { return stage + "-" + s.instance }

// publish makes a root event of the run and publishes it.
func (s *station) publish(ctx context.Context, group string, payload events.Payload) error {
	m, err := events.Encode(events.New(s.run, group, "main", time.Now(), payload))
	if err != nil {
		return err
	}
	return s.bus.Publish(ctx, m)
}

// openPool starts the sandbox.
func (s *station) openPool(ctx context.Context) (*sandbox.Pool, error) {
	pool, err := sandboxfusion.Open(ctx, &s.settings.Sandbox, s.logger.With("stage", events.StageExecution))
	if err != nil {
		return nil, err
	}
	s.owns(pool.Close)
	return pool, pool.Register(s.metrics)
}

// startExecution starts the stage that runs tests on answers.
func (s *station) startExecution(c *circle, pool *sandbox.Pool) error {
	workers := s.settings.Sandbox.Sandboxes
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	executed, err := s.openOutbox(events.StageExecution)
	if err != nil {
		return err
	}
	handler := &execution.Handler{Executor: execution.New(pool), Source: s.source(events.StageExecution), Now: time.Now}
	return s.start(c, stage.Config{
		Name: events.StageExecution, TextsOnly: true,
		Concurrency: workers + 1, // one group waits for disk and bus
		Handler:     outbox.Handler(executed, events.TypeCodeExecuted, stage.Each(handler.Handle)),
	})
}

// startRewards starts the stage that turns verdicts into rewards.
func (s *station) startRewards(c *circle) error {
	recipe, err := s.settings.Reward.Recipe()
	if err != nil {
		return err
	}
	handler := &rewards.Handler{Recipe: recipe, Source: s.source(events.StageRewards), Now: time.Now}
	return s.start(c, stage.Config{
		Name: events.StageRewards, Handler: stage.Each(handler.Handle), Batch: rewardsBatch,
	})
}

// startEvaluation starts the stage that scores held-out problems.
func (s *station) startEvaluation(c *circle) error {
	handler := &evaluation.Handler{Source: s.source(events.StageEvaluation), Now: time.Now}
	return s.start(c, stage.Config{Name: events.StageEvaluation, Handler: stage.Each(handler.Handle)})
}

// startRollout starts the stage that samples from one model, and the follower
// that brings it each new version.
func (s *station) startRollout(c *circle, role events.Role) error {
	sampler, err := tiny.Open(startPath(s.dir, role))
	if err != nil {
		return err
	}
	s.owns(sampler.Close)
	name := events.RolloutStage(role).Name
	sampled, err := s.openOutbox(name)
	if err != nil {
		return err
	}
	logger := s.logger.With("role", role)
	policy, err := gpuworker.NewFollower(gpuworker.FollowerConfig{Bus: s.bus, Run: s.run, Role: role, Sampler: sampler, Checkpoints: checkpointPath(s.dir, role), Logger: logger})
	if err != nil {
		return err
	}
	rollout, err := gpuworker.NewRollout(gpuworker.RolloutConfig{
		Role: role, Policy: policy, Source: s.source(name), Style: s.settings.Sampling.PromptStyle,
		TopP: s.settings.Sampling.TopP, TopK: s.settings.Sampling.TopK, Logger: logger,
	})
	if err != nil {
		return err
	}
	s.serve(c, name+" policy", policy.Run)
	return s.start(c, stage.Config{
		Name: name, TextsOnly: true, Handler: outbox.Handler(sampled, rollout.Makes(), rollout.Handle),
		Concurrency: rolloutsAtOnce, Batch: rolloutBatch, Linger: 5 * time.Millisecond,
	})
}

// openOutbox opens the first outbox of a stage that no other replica has open.
// A replica that starts takes over the outbox of one that died, and publishes
// its outputs.
func (s *station) openOutbox(name string) (*outbox.Outbox, error) {
	for n := range maxReplicas {
		box, err := outbox.Open(outboxPath(s.dir, name, n), outbox.Options{Logger: s.logger.With("outbox", name)})
		if errors.Is(err, outbox.ErrInUse) {
			continue
		}
		if err == nil {
			s.owns(box.Close)
		}
		return box, err
	}
	return nil, fmt.Errorf("%d replicas of %s have an outbox in %s already; more are not supported", maxReplicas, name, s.dir)
}

// startTrainer starts the one trainer of a model.
func (s *station) startTrainer(ctx context.Context, c *circle, role events.Role) error {
	name := events.TrainerStage(role).Name
	held, err := s.lease(ctx, c, name)
	if err != nil {
		return err
	}
	start := startPath(s.dir, role)
	learner, err := tiny.Open(start)
	if err != nil {
		return err
	}
	s.owns(learner.Close)
	trainer, err := gpuworker.NewTrainer(gpuworker.TrainerConfig{
		Bus: s.bus, Learner: &leasedLearner{learner, held}, Run: s.run, Role: role, Source: s.source(name),
		Checkpoints: checkpointPath(s.dir, role), Initial: start, Steps: s.settings.steps(s.problems),
		Hyper: s.settings.hyperparameters(role, s.problems), KeepLast: s.settings.Models.KeepCheckpoints, KeepEvery: s.settings.Models.KeepEvery,
		Logger: s.logger.With("role", role),
	})
	if err != nil {
		return err
	}
	s.serve(c, name, trainer.Run)
	return nil
}

// start starts a worker stage, which consumes what the topology says.
func (s *station) start(c *circle, config stage.Config) error {
	worker, ok := events.StageNamed(config.Name)
	if !ok {
		return fmt.Errorf("stage %q is not in the topology", config.Name)
	}
	config.Types = worker.Consumes
	config.Bus, config.Run, config.Instance = s.bus, s.run, s.instance
	config.AckWait, config.HeartbeatEvery = s.settings.Delivery.AckWait, heartbeatEvery
	config.Logger, config.Registerer = s.logger.With("stage", config.Name), s.metrics
	config.HoldDeadLetters = s.settings.Delivery.HoldDeadLetters
	running, err := stage.New(config)
	if err != nil {
		return err
	}
	if s.probe != nil {
		s.probe.Watch(config.Name, running.Health)
	}
	c.Go(running.Run)
	return nil
}

// serve runs a service in the circle, watched by the probe.
func (s *station) serve(c *circle, name string, run func(context.Context) error) {
	if s.probe != nil {
		run = s.probe.Service(name, run)
	}
	c.Go(run)
}
