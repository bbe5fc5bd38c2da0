package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"codea1/consumers/dashboard"
	"codea1/consumers/evaluation"
	"codea1/consumers/execution"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/stage"
	"codea1/gpuworker"
	"codea1/gpuworker/journal"
	"codea1/gpuworker/tiny"
	"codea1/producers/curriculum"
	"codea1/replay"
)

const (
	heartbeatEvery = 5 * time.Second
	// ackWait is what a resumed run may have to wait for the events that a
	// killed one was working on.
	ackWait = 5 * time.Second
	// stopTimeout bounds how long a stopped run takes to record its end.
	stopTimeout = 30 * time.Second
	// rolloutBatch is the number of groups that one call of an engine samples.
	rolloutBatch = 32
)

// train runs all stages until the planned steps are done or ctx ends, and
// prints what came of it.
//
// Three circles stop one after the other: the workers, which make events; the
// recorder, which must still log what they made last; the views, which show it.
func (r *trainingRun) train(ctx context.Context, out io.Writer) error {
	attempt, err := r.attempt(ctx)
	if err != nil {
		return err
	}
	follower := r.views
	views, stopViews := newCircle(context.WithoutCancel(ctx))
	defer func() { _ = stopViews() }() // for returns that have an error already
	views.Go(func(ctx context.Context) error { return follower.Follow(ctx, r.bus, r.name, events.Start) })
	if r.page != nil {
		views.Go(r.page.Serve)
	}
	r.where(os.Stderr)
	views.Go(dashboard.NewBar(follower, dashboard.BarConfig{Out: os.Stderr, Terminal: isTerminal(os.Stderr)}).Run)

	finished := make(chan struct{}) // every planned step is trained
	ended := make(chan struct{})    // run.finished of this attempt is in the log
	service := &curriculum.Service{Curriculum: r.curriculum, Bus: r.bus, Run: r.name, Source: "curriculum-0", Now: time.Now}
	if err := r.catchUp(ctx, service); err != nil {
		return err
	}
	// The curriculum belongs to the recorder from here on; how far it is, is
	// asked for at the end.
	var trained atomic.Int64
	trained.Store(int64(r.curriculum.Trained()))
	endGroup := fmt.Sprintf("end-%04d", attempt)
	recorder, err := replay.NewRecorder(r.bus, r.log, replay.RecorderConfig{
		Run: r.name, Source: "recorder-0", Logger: r.logger.With("stage", "recorder"),
		OnAppend: func(ctx context.Context, appended []events.Message) error {
			for i := range appended {
				if appended[i].Type == events.TypeRunFinished && appended[i].Group == endGroup {
					close(ended)
					return nil
				}
			}
			was := r.curriculum.Finished()
			if err := service.OnAppend(ctx, appended); err != nil {
				return err
			}
			trained.Store(int64(r.curriculum.Trained()))
			if r.curriculum.Finished() && !was {
				close(finished)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	recording, stopRecording := newCircle(context.WithoutCancel(ctx))
	defer func() { _ = stopRecording() }()
	recording.Go(recorder.Run)
	// run.started is the first event of the attempt, and the one whose arrival
	// in the log makes the curriculum pose the first groups.
	if err := r.announce(ctx, attempt); err != nil {
		return err
	}

	working, stopWorking := newCircle(ctx)
	defer func() { _ = stopWorking() }()
	if r.server != nil {
		working.Go(r.server.Wait)
	}
	if err := r.startWorkers(working); err != nil {
		return err
	}
	reason := events.RunCompleted
	select {
	case <-finished:
	case <-working.Done():
		reason = events.RunStopped
	case <-recording.Done():
		reason = events.RunStopped
	}
	err = stopWorking()
	if recording.Err() != nil {
		return errors.Join(err, stopRecording())
	}
	// The end is recorded even when the user is in a hurry or a worker failed.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err = errors.Join(err, r.publish(closing, endGroup, &events.RunFinished{Attempt: attempt, Steps: int(trained.Load()), Reason: reason}))
	select {
	case <-ended:
	case <-recording.Done():
	case <-closing.Done():
		err = errors.Join(err, errors.New("the end of the run could not be recorded in time; resuming it is safe"))
	}
	err = errors.Join(err, stopRecording())
	if err == nil {
		err = follower.Wait(closing, func(s *dashboard.State) bool { return s.Finished != "" && s.Attempt == attempt })
	}
	err = errors.Join(err, stopViews())
	if err != nil {
		return err
	}
	var table string
	follower.View(func(s *dashboard.State) {
		table = dashboard.Table(s, r.dir, evaluation.Interval)
		err = dashboard.SaveReport(reportPath(r.dir), s, evaluation.Interval)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%sReport                      %s\n", table, reportPath(r.dir))
	if reason == events.RunStopped {
		fmt.Fprintf(out, "\nGo on with:  codea1 train --resume %s\n", r.again())
	}
	return nil
}

// startWorkers starts every stage that makes events.
func (r *trainingRun) startWorkers(c *circle) error {
	if err := r.startRole(c, events.RoleCode); err != nil {
		return err
	}
	if err := r.startRole(c, events.RoleTest); err != nil {
		return err
	}
	workers := r.flags.Sandbox.Sandboxes
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	executor := &execution.Handler{Pool: r.pool, Source: "execution-0", Now: time.Now}
	rewarder := &rewards.Handler{Recipe: r.recipe, Source: "rewards-0", Now: time.Now}
	scorer := &evaluation.Handler{Source: "evaluation-0", Now: time.Now}
	return errors.Join(
		r.startStage(c, stage.Config{Name: "execution", Types: []events.Type{events.TypeTestsSampled}, Handler: stage.Each(executor.Handle), Concurrency: workers}),
		r.startStage(c, stage.Config{Name: rewards.StageName, Types: []events.Type{events.TypeCodeExecuted}, Handler: stage.Each(rewarder.Handle)}),
		r.startStage(c, stage.Config{Name: evaluation.StageName, Types: []events.Type{events.TypeCodeExecuted}, Handler: stage.Each(scorer.Handle)}),
	)
}

// startRole starts the sampling stage and the trainer of one model.
func (r *trainingRun) startRole(c *circle, role events.Role) error {
	start := startPath(r.dir, role)
	sampler, err := tiny.Open(start, tiny.Options{})
	if err != nil {
		return err
	}
	r.closers = append(r.closers, sampler.Close)
	learner, err := tiny.Open(start, tiny.Options{})
	if err != nil {
		return err
	}
	r.closers = append(r.closers, learner.Close)
	sampled, err := journal.Open(journalPath(r.dir, string(role)), journal.Options{})
	if err != nil {
		return err
	}
	r.closers = append(r.closers, sampled.Close)

	name := "rollout-" + string(role)
	logger := r.logger.With("role", role)
	policy, err := gpuworker.NewFollower(gpuworker.FollowerConfig{Bus: r.bus, Run: r.name, Role: role, Sampler: sampler, Logger: logger})
	if err != nil {
		return err
	}
	rollout, err := gpuworker.NewRollout(gpuworker.RolloutConfig{
		Role: role, Policy: policy, Journal: sampled, Source: name + "-0", Style: gpuworker.Style(r.flags.PromptStyle),
		TopP: r.flags.TopP, TopK: r.flags.TopK, Logger: logger,
	})
	if err != nil {
		return err
	}
	trainer, err := gpuworker.NewTrainer(gpuworker.TrainerConfig{
		Bus: r.bus, Learner: learner, Run: r.name, Role: role, Source: "trainer-" + string(role) + "-0",
		Checkpoints: checkpointPath(r.dir, string(role)), Initial: start, Steps: r.flags.steps(r.problems),
		Hyper: r.flags.hyperparameters(role, r.problems), KeepLast: r.flags.KeepCheckpoints, KeepEvery: r.flags.KeepEvery, Logger: logger,
	})
	if err != nil {
		return err
	}
	c.Go(policy.Run)
	c.Go(trainer.Run)
	return r.startStage(c, stage.Config{
		Name: name, Types: []events.Type{rollout.Consumes()}, Handler: rollout.Handle, Batch: rolloutBatch, Linger: 5 * time.Millisecond,
	})
}

func (r *trainingRun) startStage(c *circle, config stage.Config) error {
	config.Bus, config.Run, config.AckWait, config.HeartbeatEvery = r.bus, r.name, ackWait, heartbeatEvery
	config.Logger, config.Registerer = r.logger.With("stage", config.Name), r.metrics
	s, err := stage.New(config)
	if err != nil {
		return err
	}
	c.Go(s.Run)
	return nil
}

// circle is a set of services that stop together: when one fails, when its
// context ends, or when it is asked to.
type circle struct {
	group *errgroup.Group
	ctx   context.Context
}

// newCircle returns an empty circle and the function that stops it, waits, and
// returns the first failure. Stopping twice is harmless.
func newCircle(parent context.Context) (c *circle, stop func() error) {
	ctx, cancel := context.WithCancel(parent)
	group, ctx := errgroup.WithContext(ctx)
	return &circle{group: group, ctx: ctx}, func() error {
		cancel()
		return group.Wait()
	}
}

// Go runs a service until the circle stops. That it was stopped is no failure.
func (c *circle) Go(run func(context.Context) error) {
	c.group.Go(func() error {
		err := run(c.ctx)
		if err != nil && c.ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	})
}

// Done is closed when the circle stops or one of its services has failed.
func (c *circle) Done() <-chan struct{} { return c.ctx.Done() }

// Err is not nil once Done is closed.
func (c *circle) Err() error { return c.ctx.Err() }

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
