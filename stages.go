package main

import (
	"context"
	"runtime"
	"time"

	"codea1/consumers/dashboard/show"
	"codea1/consumers/evaluation"
	"codea1/consumers/execution"
	"codea1/consumers/execution/judging"
	"codea1/consumers/execution/literal"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/outbox"
	"codea1/events/services"
	"codea1/events/stage"
	"codea1/gpuworker/models"
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
	events.StageDashboard:   {command: show.Stage{}},
}

const (
	// rewardsBatch is the number of groups that are rewarded between two requests
	// to the bus.
	rewardsBatch = 8
	// judgedAtOnce are the groups that a judge stage works on.
	judgedAtOnce = 4
)

// startRollout returns the start of the stage that samples from a role's model.
func startRollout(role events.Role) func(context.Context, *runner, *services.Group) error {
	return func(ctx context.Context, r *runner, g *services.Group) error {
		return r.models.StartRollout(ctx, g, role)
	}
}

// startTrainer returns the start of the one trainer of a role's model.
func startTrainer(role events.Role) func(context.Context, *runner, *services.Group) error {
	return func(ctx context.Context, r *runner, g *services.Group) error {
		return r.models.StartTrainer(ctx, g, role, r.settings.steps(r.problems))
	}
}

// startJudge starts the stage that judges answers.
func startJudge(ctx context.Context, r *runner, g *services.Group) error {
	if err := r.openPool(ctx); err != nil {
		return err
	}
	judged, err := r.OpenOutbox(events.StageJudge)
	if err != nil {
		return err
	}
	config := judging.Config{Judges: r.settings.Reward.Judges(), Pool: r.pool, Source: r.Source(events.StageJudge), Now: time.Now, Logger: r.Logger.With("stage", events.StageJudge, "server", r.settings.Judge.JudgeServer)}
	if judging.Asks(r.settings.Reward.Judges()) {
		model, err := openJudge(r.settings, r.Logger.With("stage", events.StageJudge))
		if err != nil {
			return err
		}
		r.OnClose(model.Close)
		config.Model = judgeModel{model}
	}
	handler, err := judging.New(ctx, config)
	if err != nil {
		return err
	}
	return r.StartWorker(g, stage.Config{
		Name: events.StageJudge, TextsOnly: true, Concurrency: judgedAtOnce,
		HandleTimeout: models.Unlimited, // an outage of the judge's server has no limit, as one of the bus
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
	executed, err := r.OpenOutbox(events.StageExecution)
	if err != nil {
		return err
	}
	handler := &execution.Handler{Executor: execution.New(r.pool), Source: r.Source(events.StageExecution), Now: time.Now}
	return r.StartWorker(g, stage.Config{
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
	handler := &rewards.Handler{Recipe: recipe, Source: r.Source(events.StageRewards), Now: time.Now}
	return r.StartWorker(g, stage.Config{Name: events.StageRewards, Handler: stage.Each(handler.Handle), Batch: rewardsBatch})
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
	handler := &rewards.Shadow{Recipe: recipe, Recipes: others, Source: r.Source(events.StageShadow), Now: time.Now}
	return r.StartWorker(g, stage.Config{Name: events.StageShadow, Handler: stage.Each(handler.Handle), KeepGroups: true})
}

// startEvaluation starts the stage that scores held-out problems.
func startEvaluation(_ context.Context, r *runner, g *services.Group) error {
	handler := &evaluation.Handler{Source: r.Source(events.StageEvaluation), Now: time.Now, Trivial: literal.TrivialInput}
	return r.StartWorker(g, stage.Config{Name: events.StageEvaluation, Handler: stage.Each(handler.Handle)})
}
