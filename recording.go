package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"codea1/consumers/evaluation"
	"codea1/consumers/execution"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/process"
	"codea1/events/rundir"
	"codea1/events/services"
	"codea1/events/settings"
	"codea1/producers/curriculum"
	"codea1/producers/problems"
	"codea1/replay/eventlog"
	recorder "codea1/replay/recording"
)

// recording is the recorder stage: an attempt at the run with its log and the Mistake
// Book, and the curriculum, which poses the problems that are due after each logged event.
type recording struct {
	*runner
	*recorder.Attempt // nil until open

	curriculum *curriculum.Curriculum
	start      map[events.Role]events.Checkpoint
	budget     time.Duration    // of the attempt; 0 for none
	content    contents         // of the problem files
	training   []events.Problem // until they are checked
}

// open opens the resources that depend on the settings, the quick ones first, so
// that a mistake costs no time.
func (r *recording) open(ctx context.Context) error {
	training, evals, err := r.loadProblems(ctx)
	if err != nil {
		return err
	}
	r.problems, r.training = len(training), training
	if r.settings.models().Shared() && r.settings.Models.CodeModel == "" {
		r.Logger.Warn("the embedded Code LLM was not trained to write tests, so self-play teaches it nothing; name a model of both tasks with --code-model")
	}
	if r.start, err = r.models.Start(ctx, r.Dir); err != nil {
		return err
	}
	log, err := eventlog.Open(rundir.Log(r.Dir), eventlog.Options{Logger: r.Logger.With("part", "log")})
	if err != nil {
		return err
	}
	r.OnClose(log.Close)
	schedule, err := r.settings.schedule()
	if err != nil {
		return err
	}
	if r.curriculum, err = curriculum.New(schedule, training, log.Book(), evals); err != nil {
		return err
	}
	attempt, last, err := recorder.Next(ctx, recorder.Config{
		Process: r.Process, Log: log, KeepTokens: r.settings.KeepTokens, Differences: startedDifferences,
	}, r.settings.steps(r.problems), r.start)
	if err != nil {
		return err
	}
	r.Attempt = attempt
	if last != nil {
		if err := r.content.check(last, &r.settings.Data); err != nil {
			return err
		}
	}
	return r.models.UploadStart(ctx, r.Number == 1)
}

// begin begins the attempt with a configuration for run.started.
func (r *recording) begin(ctx context.Context, g *services.Group, config string) error {
	bus := process.FirstCounts{Broker: r.Bus, Logger: r.Logger.With("stage", events.StageRecorder)}
	service := &curriculum.Service{Curriculum: r.curriculum, Bus: bus, Run: r.Run, Source: r.Source(events.StageCurriculum), Now: time.Now, Budget: r.budget}
	if err := r.settings.Bus.ApplyStreamLimit(ctx, r.Bus, r.Run); err != nil {
		return err
	}
	return r.Begin(ctx, g, posing{service, r.curriculum}, events.RunStarted{
		Steps: r.settings.steps(r.problems), Build: build(), Config: config,
		ProblemSet: r.settings.Data.Problems, Problems: r.problems,
		Code: r.start[events.RoleCode], Test: r.start[events.RoleTest], Models: r.settings.models(),
		ProblemsSHA256: r.content.problems, HeldoutSHA256: r.content.heldout,
	})
}

// posing implements the curriculum of an attempt.
type posing struct {
	*curriculum.Service
	of *curriculum.Curriculum
}

// Trained returns the trained steps.
func (p posing) Trained() int { return p.of.Trained() }

// Finished reports whether there are no more steps to train.
func (p posing) Finished() bool { return p.of.Finished() }

// startedDifferences describes the settings that differ between two configurations of
// run.started, besides those that a resume may change and those that may differ between
// machines.
func startedDifferences(there, here string) (string, error) {
	was, err := startedSettings(there)
	if err != nil {
		return "", err
	}
	is, err := startedSettings(here)
	if err != nil {
		return "", err
	}
	var keys []string
	for _, d := range settings.Differences(was, is, func(f *settings.Field) bool {
		return f.Change != settings.ChangeResume && f.Scope != settings.ScopePath
	}) {
		keys = append(keys, fmt.Sprintf("--%s (%s there, %s here)", d.Was.Key, d.Was, d.Is))
	}
	return strings.Join(keys, ", "), nil
}

// contents are the SHA-256 of the problems in the files of a run.
type contents struct{ problems, heldout string }

// check fails if a file holds other problems than at the last start of the run. A
// fork may have started with other files than the run of which it has the events.
func (c *contents) check(started *events.RunStarted, now *problems.Flags) error {
	was, err := startedSettings(started.Config)
	if err != nil {
		return err
	}
	for _, f := range []struct{ then, now, wasIn, in, name string }{
		{started.ProblemsSHA256, c.problems, was.Data.Problems, now.Problems, "problem set"},
		{started.HeldoutSHA256, c.heldout, was.Data.Heldout, now.Heldout, "held-out set"},
	} {
		if f.then != "" && f.then != f.now && f.wasIn == f.in {
			return fmt.Errorf("%s %s: its problems are not those that the run started with (their SHA-256 was %s, it is %s): restore the file, or start a new run",
				f.name, f.in, f.then, f.now)
		}
	}
	return nil
}

// loadProblems returns the training problems, and the evaluation of the held-out
// problems.
func (r *recording) loadProblems(ctx context.Context) ([]events.Problem, curriculum.Evaluation, error) {
	options := problems.LoadOptions{
		OnBadRow: r.settings.Data.OnBadRow,
		Report:   func(bad *problems.BadRowError) { r.Logger.Warn("row skipped", "error", bad) },
	}
	set, _, err := problems.ReadAll(ctx, r.settings.Data.Problems, options)
	if err != nil {
		return nil, nil, err
	}
	if r.content.problems, err = problems.SHA256(set); err != nil {
		return nil, nil, err
	}
	training := make([]events.Problem, len(set))
	for i := range set {
		training[i] = r.posable(&set[i]) // the curriculum removes golden tests that the recipe does not need
	}
	if err := r.checkPredictions(training); err != nil {
		return nil, nil, err
	}
	if n := r.settings.Curriculum.TrainProblems; n > 0 && n < len(training) {
		training = curriculum.Subset(training, n, r.settings.Curriculum.Seed)
	}
	if r.settings.Data.Heldout == "" {
		return training, nil, nil
	}
	heldout, _, err := problems.ReadAll(ctx, r.settings.Data.Heldout, options)
	if err != nil {
		return nil, nil, err
	}
	if r.content.heldout, err = problems.SHA256(heldout); err != nil {
		return nil, nil, err
	}
	if n := r.settings.Evaluation.EvalProblems; n > 0 && n < len(heldout) {
		heldout = heldout[:n]
	}
	items := make([]evaluation.Item, len(heldout))
	for i := range heldout {
		items[i] = heldoutItem(&heldout[i], r.posable(&heldout[i]))
	}
	for i := range items {
		if _, err := execution.ReadPredictions(items[i].Problem.Predict); err != nil {
			return nil, nil, fmt.Errorf("held-out problem %s: %w", items[i].Problem.ID, err)
		}
	}
	groups, err := evaluation.Groups(curriculum.Tag(0), items, r.settings.evaluation())
	if err != nil {
		return nil, nil, err
	}
	return training, func(string) []events.ProblemPosed { return slices.Clone(groups) }, nil
}

// checkPredictions refuses a training set that the reward cannot reward: predict problems
// with a Test LLM, or other problems with a recipe for predict problems.
func (r *recording) checkPredictions(training []events.Problem) error {
	recipe, err := r.settings.Reward.Recipe()
	if err != nil {
		return err
	}
	for i := range training {
		p := &training[i]
		if _, err := execution.ReadPredictions(p.Predict); err != nil {
			return fmt.Errorf("problem %s: %w", p.ID, err)
		}
		switch predict := len(p.Predict) > 0; {
		case predict && !r.settings.models().WithoutTest():
			return fmt.Errorf("problem %s is a predict problem, which has no suites: train with --reward %s, %s or %s", p.ID, rewards.NameExecVerify, rewards.NameGolden, rewards.NameVerpo)
		case !predict && recipe.Rules().Predict:
			return fmt.Errorf("problem %s is no predict problem, but --reward %s rewards nothing else: make predict problems with codea1 problems predict", p.ID, recipe.Name())
		}
	}
	return nil
}

// heldoutItem returns a held-out problem with its defective programs.
func heldoutItem(p *problems.Problem, posable events.Problem) evaluation.Item {
	item := evaluation.Item{Problem: posable}
	for _, b := range p.Buggy {
		item.Buggy = append(item.Buggy, b.Code)
	}
	return item
}

// checkTruths returns an error if no ground truth of a user's problems passes its
// tests, and warns if many fail. A run that has begun is not checked again. The check
// needs a sandbox, which a recorder in a separate process does not have.
func (r *recording) checkTruths(ctx context.Context) error {
	training, set := r.training, r.settings.Data.Problems
	r.training = nil
	if r.Number > 1 || strings.HasPrefix(set, problems.BuiltinAll) {
		return nil
	}
	open := func() (*sandbox.Pool, error) { return r.pool, nil }
	warning, err := problems.CheckSample(ctx, &checker{open}, training, r.pool.Config().Workers)
	if err != nil {
		return fmt.Errorf("problem set %s: %w; `codea1 problems check %s` shows all of them", set, err, commandline.Word(set))
	}
	if warning != "" {
		r.Logger.Warn(warning, "set", set)
	}
	return nil
}

// posable returns a problem with as many golden tests as fit into an event.
func (r *recording) posable(p *problems.Problem) events.Problem {
	posable, omitted := p.Posable(true)
	if omitted > 0 {
		r.Logger.Warn("golden tests left out: too large for an event", "problem", p.ID, "tests", omitted)
	}
	return posable
}
