package main

import (
	"context"
	"runtime"
	"time"

	"codea1/consumers/evaluation"
	"codea1/consumers/execution"
	"codea1/consumers/execution/judging"
	"codea1/consumers/execution/literal"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/outbox"
	"codea1/events/rundir"
	"codea1/events/services"
	"codea1/events/stage"
	"codea1/gpuworker"
)

// stageProcess is a stage as a process.
type stageProcess struct {
	// command is the value of its command; nil for WorkerStage.
	command any
	// start starts the stage; nil for a command with a Run method of its own.
	start func(context.Context, *runner, *services.Group) error
}

// stages are the processes of events.Stages. A new stage needs an entry there
// and one here.
var stages = map[string]stageProcess{
	events.StageRecorder:    {command: RecorderStage{}},
	events.StageRolloutCode: {start: startRollout(events.RoleCode), command: ModelStage{}},
	events.StageRolloutTest: {start: startRollout(events.RoleTest), command: ModelStage{}},
	events.StageJudge:       {start: startJudge, command: JudgeStage{}},
	events.StageExecution:   {start: startExecution, command: ExecutionStage{}},
	events.StageRewards:     {start: startRewards},
	events.StageEvaluation:  {start: startEvaluation},
	events.StageShadow:      {start: startShadow},
	events.StageTrainerCode: {start: startTrainer(events.RoleCode), command: ModelStage{}},
	events.StageTrainerTest: {start: startTrainer(events.RoleTest), command: ModelStage{}},
	events.StageDashboard:   {command: DashboardStage{}},
}

const (
	// rolloutBatch is the number of groups that one call of an engine samples.
	rolloutBatch = 32
	// rolloutsAtOnce keeps an engine busy, which samples one batch at a time:
	// meanwhile the outbox stores and the bus takes another one.
	rolloutsAtOnce = 2
	// rewardsBatch is the number of groups that are rewarded between two requests
	// to the bus.
	rewardsBatch = 8
	// judgedAtOnce are the groups that a judge stage works on.
	judgedAtOnce = 4
)

// startRollout returns the start of the stage that samples from a role's model,
// and of the follower that loads each new version of the model.
func startRollout(role events.Role) func(context.Context, *runner, *services.Group) error {
	return func(ctx context.Context, r *runner, g *services.Group) error {
		own := r.settings.models().Policy(role) // its model samples
		policy, err := r.openPolicy(ctx, g, role)
		if err != nil {
			return err
		}
		name := events.RolloutStage(role).Name
		sampled, err := r.openOutbox(name)
		if err != nil {
			return err
		}
		template := func() (*gpuworker.Prompt, error) { return r.settings.Sampling.Prompt(role) }
		if own != role {
			template = r.settings.Sampling.BlindPrompt
		}
		prompt, err := template()
		if err != nil {
			return err
		}
		rollout, err := gpuworker.NewRollout(gpuworker.RolloutConfig{
			Role: role, Policy: policy, Source: r.source(name), Prompt: prompt,
			TopP: r.settings.Sampling.TopP, TopK: r.settings.Sampling.TopK, Logger: r.logger.With("role", role),
		})
		if err != nil {
			return err
		}
		config := stage.Config{
			Name: name, TextsOnly: true, Handler: outbox.Handler(sampled, rollout.Makes(), rollout.Handle),
			Concurrency: rolloutsAtOnce, Batch: rolloutBatch, Linger: 5 * time.Millisecond,
		}
		if r.settings.onServer(role) {
			config = batchForServer(config, r.settings.Engine.ServerRequests)
		}
		return r.startWorker(g, config)
	}
}

// startJudge starts the stage that judges answers.
func startJudge(ctx context.Context, r *runner, g *services.Group) error {
	if err := r.openPool(ctx); err != nil {
		return err
	}
	judged, err := r.openOutbox(events.StageJudge)
	if err != nil {
		return err
	}
	config := judging.Config{Judges: r.settings.judges(), Pool: r.pool, Source: r.source(events.StageJudge), Now: time.Now}
	if r.settings.asksJudge() {
		model, err := openJudge(r.settings, r.logger.With("stage", events.StageJudge))
		if err != nil {
			return err
		}
		r.onClose(model.Close)
		config.Model = judgeModel{model}
	}
	handler, err := judging.New(ctx, config)
	if err != nil {
		return err
	}
	return r.startWorker(g, stage.Config{
		Name: events.StageJudge, TextsOnly: true, Concurrency: judgedAtOnce,
		HandleTimeout: unlimited, // an outage of the judge's server has no limit, as one of the bus
		Handler:       outbox.Handler(judged, events.TypeCodeJudged, stage.Each(handler.Handle)),
	})
}

// startExecution starts the stage that runs tests on answers.
func startExecution(ctx context.Context, r *runner, g *services.Group) error {
	if err := r.openPool(ctx); err != nil {
		return err
	}
	workers := r.settings.Sandbox.Sandboxes
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	executed, err := r.openOutbox(events.StageExecution)
	if err != nil {
		return err
	}
	handler := &execution.Handler{Executor: execution.New(r.pool), Source: r.source(events.StageExecution), Now: time.Now}
	return r.startWorker(g, stage.Config{
		Name: events.StageExecution, TextsOnly: true,
		Concurrency: workers + 1, // one group waits for disk and bus
		Handler:     outbox.Handler(executed, events.TypeCodeExecuted, stage.Each(handler.Handle)),
	})
}

// startRewards starts the stage that turns verdicts into rewards.
func startRewards(_ context.Context, r *runner, g *services.Group) error {
	recipe, err := r.settings.Reward.Recipe()
	if err != nil {
		return err
	}
	handler := &rewards.Handler{Recipe: recipe, Source: r.source(events.StageRewards), Now: time.Now}
	return r.startWorker(g, stage.Config{Name: events.StageRewards, Handler: stage.Each(handler.Handle), Batch: rewardsBatch})
}

// startShadow starts the stage that rewards groups under other recipes, too.
func startShadow(_ context.Context, r *runner, g *services.Group) error {
	recipe, err := r.settings.Reward.Recipe()
	if err != nil {
		return err
	}
	others, err := r.settings.Reward.Shadows()
	if err != nil {
		return err
	}
	handler := &rewards.Shadow{Recipe: recipe, Recipes: others, Source: r.source(events.StageShadow), Now: time.Now}
	return r.startWorker(g, stage.Config{Name: events.StageShadow, Handler: stage.Each(handler.Handle), KeepGroups: true})
}

// startEvaluation starts the stage that scores held-out problems.
func startEvaluation(_ context.Context, r *runner, g *services.Group) error {
	handler := &evaluation.Handler{Source: r.source(events.StageEvaluation), Now: time.Now, Trivial: literal.TrivialInput}
	return r.startWorker(g, stage.Config{Name: events.StageEvaluation, Handler: stage.Each(handler.Handle)})
}

// startTrainer returns the start of the one trainer of a role's model.
func startTrainer(role events.Role) func(context.Context, *runner, *services.Group) error {
	return func(ctx context.Context, r *runner, g *services.Group) error {
		name := events.TrainerStage(role).Name
		lease, err := r.lease(ctx, g, name)
		if err != nil {
			return err
		}
		learner, err := r.openEngine(ctx, role, modelUse{role: role, trains: true})
		if err != nil {
			return err
		}
		remote, err := r.remote(role)
		if err != nil {
			return err
		}
		if remote != nil {
			remote.Confirm = lease.Confirm
		}
		meter, err := r.meter(name)
		if err != nil {
			return err
		}
		trainer, err := gpuworker.NewTrainer(gpuworker.TrainerConfig{
			Bus: r.bus, Learner: gpuworker.Leased(learner, lease), Run: r.run, Role: role, Shared: r.settings.models().Shared(), Source: r.source(name),
			Checkpoints: rundir.Checkpoints(r.dir, role), Initial: rundir.Start(r.dir, role), Steps: r.settings.steps(r.problems),
			Hyper: r.settings.hyperparameters(role, r.problems), KeepLast: r.settings.Models.KeepCheckpoints, KeepEvery: r.settings.Models.KeepEvery,
			Remote: remote, Turns: r.turns, Second: role == events.RoleTest, Meter: meter, Logger: r.logger.With("role", role),
		})
		if err != nil {
			return err
		}
		g.Go(meter.Run)
		r.serve(g, name, trainer.Run)
		return nil
	}
}
