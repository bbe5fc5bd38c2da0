package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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
)

// recording is the recorder stage: the event log with the Mistake Book, and the
// curriculum, which poses the problems that are due after each logged event. A
// run has one recording at a time.
type recording struct {
	*runner

	log        *eventlog.Log
	curriculum *curriculum.Curriculum
	service    *curriculum.Service
	start      map[events.Role]events.Checkpoint
	budget     time.Duration    // of the attempt; 0 for none
	attempt    int              // from 1
	config     string           // of the attempt
	content    contents         // of the problem files
	training   []events.Problem // until they are checked
	completed  bool             // by an earlier attempt

	stopBeating func() // ends the heartbeats and waits for the last one

	trained  atomic.Int64  // steps; only the recorder may use the curriculum
	ending   atomic.Bool   // run.finished is published, or will be
	finished chan struct{} // closed when every step is trained that was planned or that the budget allows
	ended    chan struct{} // closed when run.finished of this attempt is in the log
}

func newRecording(r *runner) *recording {
	return &recording{runner: r, finished: make(chan struct{}), ended: make(chan struct{})}
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
	if r.log, err = eventlog.Open(rundir.Log(r.Dir), eventlog.Options{Logger: r.Logger.With("part", "log")}); err != nil {
		return err
	}
	r.OnClose(r.log.Close)
	schedule, err := r.settings.schedule()
	if err != nil {
		return err
	}
	if r.curriculum, err = curriculum.New(schedule, training, r.log.Book(), evals); err != nil {
		return err
	}
	if err := r.countAttempts(ctx); err != nil {
		return err
	}
	return r.models.UploadStart(ctx, r.attempt == 1)
}

// begin starts the recorder and publishes run.started with the configuration. It
// is the first event of an attempt, and its arrival in the log makes the
// curriculum pose the problems that are due.
func (r *recording) begin(ctx context.Context, g *services.Group, config string) error {
	r.config = config
	bus := process.FirstCounts{Broker: r.Bus, Logger: r.Logger.With("stage", events.StageRecorder)}
	r.service = &curriculum.Service{Curriculum: r.curriculum, Bus: bus, Run: r.Run, Source: r.Source(events.StageCurriculum), Now: time.Now, Budget: r.budget}
	if err := r.settings.Bus.ApplyStreamLimit(ctx, r.Bus, r.Run); err != nil {
		return err
	}
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	r.trained.Store(int64(r.curriculum.Trained()))
	meter, err := r.Meter(events.StageRecorder)
	if err != nil {
		return err
	}
	recorder, err := eventlog.NewRecorder(bus, r.log, eventlog.RecorderConfig{
		Run: r.Run, Source: r.Source(events.StageRecorder), Logger: r.Logger.With("stage", events.StageRecorder), OnAppend: r.appended,
		KeepTokens: r.settings.KeepTokens, Meter: meter,
	})
	if err != nil {
		return err
	}
	g.Go(recorder.Run)
	beating, stop := context.WithCancel(g.Context())
	silent := make(chan struct{})
	r.stopBeating = func() { stop(); <-silent }
	g.Go(func(context.Context) error { defer close(silent); return meter.Run(beating) })
	return r.PublishInTurn(ctx, fmt.Sprintf("start-%04d", r.attempt), r.attempt > 1, &events.RunStarted{
		Attempt: r.attempt, Steps: r.settings.steps(r.problems), Build: build(), Config: config,
		ProblemSet: r.settings.Data.Problems, Problems: r.problems,
		Code: r.start[events.RoleCode], Test: r.start[events.RoleTest], Models: r.settings.models(),
		ProblemsSHA256: r.content.problems, HeldoutSHA256: r.content.heldout,
	})
}

// appended poses the problems that are due after events were appended to the log.
func (r *recording) appended(ctx context.Context, appended []events.Message) error {
	for i := range appended {
		if appended[i].Type == events.TypeRunFinished && appended[i].Group == r.endGroup() {
			close(r.ended)
		}
		if appended[i].Type == events.TypeRunStarted {
			if err := r.checkStarted(&appended[i]); err != nil {
				return err
			}
		}
	}
	if r.ending.Load() {
		return nil
	}
	was := r.curriculum.Finished()
	if err := r.service.OnAppend(ctx, appended); err != nil {
		return err
	}
	r.trained.Store(int64(r.curriculum.Trained()))
	if r.curriculum.Finished() && !was {
		close(r.finished)
	}
	return nil
}

// checkStarted returns an error when another process has begun this attempt with
// other settings. The first run.started is the valid one: the workers follow it.
func (r *recording) checkStarted(m *events.Message) error {
	e, err := m.Decode()
	if err != nil {
		return err
	}
	started := e.Payload.(*events.RunStarted)
	if started.Attempt != r.attempt {
		return nil
	}
	there, err := startedSettings(started.Config)
	if err != nil {
		return err
	}
	here, err := startedSettings(r.config)
	if err != nil {
		return err
	}
	var keys []string
	for _, d := range settings.Differences(there, here, func(f *settings.Field) bool {
		return f.Change != settings.ChangeResume && f.Scope != settings.ScopePath
	}) {
		keys = append(keys, fmt.Sprintf("--%s (%s there, %s here)", d.Was.Key, d.Was, d.Is))
	}
	what := strings.Join(keys, ", ")
	switch {
	case what != "":
	case started.Problems != r.problems:
		what = "the number of training problems"
	case started.Steps != r.settings.steps(r.problems):
		what = "the number of steps"
	}
	for role, start := range r.start {
		if what == "" && started.Start(role).SHA256 != start.SHA256 {
			what = "the checkpoint that the " + string(role) + " model started from"
		}
	}
	if what == "" {
		return nil
	}
	return fmt.Errorf("the bus has another run with the name %s, which differs in %s: resume that run in its own directory, or choose another name and another directory than %s", r.Run, what, r.Dir)
}

func (r *recording) endGroup() string { return fmt.Sprintf("end-%04d", r.attempt) }

// reason returns why the attempt ends. An attempt that used up its budget before
// the planned steps is stopped, not completed.
func (r *recording) reason() string {
	select {
	case <-r.finished:
		if int(r.trained.Load()) >= r.settings.steps(r.problems) {
			return events.RunCompleted
		}
	default:
	}
	return events.RunStopped
}

// finish publishes the end of the attempt and waits until the log has it.
// recorder is the group in which the recorder runs.
func (r *recording) finish(ctx context.Context, recorder *services.Group, reason string) error {
	r.ending.Store(true)
	r.stopBeating() // run.finished is the recorder's last event
	err := r.PublishInTurn(ctx, r.endGroup(), true, &events.RunFinished{Attempt: r.attempt, Steps: int(r.trained.Load()), Reason: reason})
	if err != nil && ctx.Err() == nil {
		return err
	}
	select {
	case <-r.ended:
		return nil
	case <-recorder.Done():
		return nil // stopping the group returns its error
	case <-ctx.Done():
		return errors.New("the end of the attempt was not recorded in time; the run can be resumed")
	}
}

// catchUp brings the curriculum to the end of the log.
func (r *recording) catchUp(ctx context.Context) error {
	posing, _ := r.settings.models().Stage(events.StageCurriculum)
	for record, err := range r.log.Read(ctx, eventlog.ReadOptions{Types: posing.Consumes}) {
		if err != nil {
			return err
		}
		if err := r.service.Observe([]events.Message{record.Message}); err != nil {
			return err
		}
	}
	return nil
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

// countAttempts reads the earlier attempts at the run from the log. It fails when
// the run no longer has the checkpoints and the problems that it started from,
// because training would then continue another run.
func (r *recording) countAttempts(ctx context.Context) error {
	r.attempt = 1
	var last *events.RunStarted
	for record, err := range r.log.Read(ctx, eventlog.ReadOptions{Types: []events.Type{events.TypeRunStarted, events.TypeRunFinished}}) {
		if err != nil {
			return err
		}
		if record.Message.Type == events.TypeRunStarted {
			r.attempt++
			r.completed = false
		}
		e, err := record.Decode()
		if eventlog.IsUnreadable(err) {
			continue // logs of earlier builds may have such an event
		}
		if err != nil {
			return err
		}
		if finished, ok := e.Payload.(*events.RunFinished); ok {
			r.completed = finished.Reason == events.RunCompleted && finished.Steps >= r.settings.steps(r.problems)
			continue
		}
		started := e.Payload.(*events.RunStarted)
		for role, start := range r.start {
			if was := started.Start(role).SHA256; was != start.SHA256 {
				return fmt.Errorf("%s: the weights are not those that the run started from (its SHA-256 was %s): restore the original, or start a new run",
					rundir.Start(r.Dir, role), was)
			}
		}
		last = started
	}
	if last == nil {
		return nil
	}
	return r.content.check(last, &r.settings.Data)
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
	if r.attempt > 1 || strings.HasPrefix(set, problems.BuiltinAll) {
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
