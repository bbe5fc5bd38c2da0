package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"codea1/consumers/dashboard/show"
	"codea1/consumers/evaluation"
	"codea1/consumers/execution"
	"codea1/consumers/execution/judging"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/outbox"
	"codea1/events/process"
	"codea1/events/services"
	"codea1/events/stage"
	"codea1/gpuworker"
	"codea1/gpuworker/models"
	"codea1/gpuworker/openai"
)

// runner is a process of a run with the settings of the run: all stages under train, one
// under stage.
type runner struct {
	*process.Process
	settings *RunSettings  // of the run
	problems int           // training problems
	pool     *sandbox.Pool // nil until openPool
	models   *models.Set   // nil until configure
}

// configure sets the settings of the run.
func (r *runner) configure(s *RunSettings) {
	r.settings = s
	r.Models, r.Delivery = s.models(), s.Delivery
	r.models = &models.Set{Config: s.modelConfig(), Process: r.Process}
}

// openPool starts the sandbox, once.
func (r *runner) openPool(ctx context.Context) error {
	if r.pool != nil {
		return nil
	}
	pool, err := sandboxfusion.Open(ctx, &r.settings.Sandbox, r.Logger.With("stage", events.StageExecution))
	if err != nil {
		return err
	}
	r.pool = pool
	r.OnClose(pool.Close)
	return pool.Register(r.Metrics)
}

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

// checkJudges refuses a run with a judge that this machine cannot have, before the run
// begins.
func (r *runner) checkJudges(ctx context.Context) error {
	if slices.Contains(r.settings.Reward.Judges(), events.JudgeFindings) {
		if _, err := judging.New(ctx, judging.Config{Judges: []events.Judge{events.JudgeFindings}, Pool: r.pool}); err != nil {
			return err
		}
	}
	if !judging.Asks(r.settings.Reward.Judges()) {
		return nil
	}
	model, err := openJudge(r.settings, r.Logger)
	if err != nil {
		return err
	}
	defer model.Close()
	verdict := slices.Contains(r.settings.Reward.Judges(), events.JudgeVerdict)
	switch err := judging.Check(ctx, judgeModel{model.Once()}, verdict); {
	case errors.Is(err, openai.ErrBusy):
		r.Logger.Warn("the judge's server is busy or starting", "server", r.settings.Judge.JudgeServer, "error", err)
		return nil
	case err != nil:
		return fmt.Errorf("the judge model %s at %s does not judge `x = 1`: start its server, or correct --judge-server and --judge-model: %w",
			r.settings.Judge.JudgeModel, r.settings.Judge.JudgeServer, err)
	}
	return nil
}

// openJudge returns the judge model. It sends nothing.
func openJudge(s *RunSettings, logger *slog.Logger) (*openai.Sampler, error) {
	j := &s.Judge
	if j.JudgeServer == "" {
		return nil, errors.New("a reward of the run needs a judge model: give the address of its server with --judge-server")
	}
	model, err := openai.New(openai.Options{URL: j.JudgeServer, Model: j.JudgeModel, KeyFile: j.JudgeKeyFile, CAFile: j.JudgeCAFile, Logger: logger})
	if err != nil {
		return nil, judgeError{err}
	}
	return model, nil
}

// judgeError is an error about the flags of a model's server that names those of a judge.
type judgeError struct{ error }

var judgeFlags = strings.NewReplacer("--server-key-file", "--judge-key-file", "--server-ca-file", "--judge-ca-file", "--server", "--judge-server", "--model", "--judge-model")

func (e judgeError) Error() string { return judgeFlags.Replace(e.error.Error()) }

func (e judgeError) Unwrap() error { return e.error }

// judgeModel is a model on a server as a judge.
type judgeModel struct{ *openai.Sampler }

// Name implements judging.Model.
func (j judgeModel) Name() string { return j.Model() }

// Score implements judging.Model. The reward model reads the question and the code as
// CodeScaler's does: as a chat of one turn.
func (j judgeModel) Score(ctx context.Context, question, code string) (float64, error) {
	score, err := j.Sampler.Score(ctx, []gpuworker.Message{{Role: "user", Content: question}, {Role: "assistant", Content: code}})
	return score, unjudged(err)
}

// Safe implements judging.Model.
func (j judgeModel) Safe(ctx context.Context, question, code string) (bool, error) {
	return judging.Verdict(ctx, j.ask, question, code)
}

// ask implements judging.Ask.
func (j judgeModel) ask(ctx context.Context, prompt string, tokens int) (response string, ended bool, err error) {
	completions, err := j.Sample(ctx, []gpuworker.SampleRequest{{
		Messages: []gpuworker.Message{{Role: "user", Content: prompt}}, Seeds: []uint64{1},
	}}, gpuworker.SamplingParams{Temperature: 1, TopP: 1, TopK: 1, MaxTokens: tokens})
	if err != nil {
		return "", false, unjudged(err)
	}
	return completions[0][0].Text, completions[0][0].Finish != events.FinishLength, nil
}

// unjudged marks the error of a request that the server refuses for its content.
func unjudged(err error) error {
	if errors.Is(err, openai.ErrRefused) || errors.Is(err, openai.ErrProtocol) {
		return fmt.Errorf("%w: %w", judging.ErrUnjudged, err)
	}
	return err
}
