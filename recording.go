package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"codea1/consumers/evaluation"
	"codea1/events"
	"codea1/events/settings"
	"codea1/gpuworker/checkpoint"
	"codea1/gpuworker/tiny"
	"codea1/producers/curriculum"
	"codea1/producers/problems"
	"codea1/replay/eventlog"
)

// recording is the projection that a run grows from: the log with the Mistake
// Book, and the curriculum, which poses what the log says is due. A run has
// one at a time.
type recording struct {
	*station

	log        *eventlog.Log
	curriculum *curriculum.Curriculum
	service    *curriculum.Service
	start      map[events.Role]events.Checkpoint
	budget     time.Duration // of the attempt; 0 for none
	attempt    int           // from 1
	config     string        // of the attempt
	completed  bool          // by the attempt before

	trained  atomic.Int64  // steps; the curriculum itself belongs to the recorder
	finished chan struct{} // closed when every step is trained, planned or within the budget
	ended    chan struct{} // closed when run.finished of this attempt is in the log
}

func newRecording(s *station) *recording {
	return &recording{station: s, start: map[events.Role]events.Checkpoint{}, finished: make(chan struct{}), ended: make(chan struct{})}
}

// open opens the parts of a recording that can be wrong, the quick ones first,
// so that a mistake costs no time.
func (r *recording) open(ctx context.Context) error {
	training, evals, err := r.loadProblems(ctx)
	if err != nil {
		return err
	}
	r.problems = len(training)
	for role, from := range map[events.Role]string{events.RoleCode: r.settings.Models.CodeModel, events.RoleTest: r.settings.Models.TestModel} {
		if r.start[role], err = r.startingPoint(ctx, role, from); err != nil {
			return err
		}
	}
	if r.log, err = eventlog.Open(logPath(r.dir), eventlog.Options{Logger: r.logger.With("part", "log")}); err != nil {
		return err
	}
	r.owns(r.log.Close)
	schedule, err := r.settings.schedule(len(training))
	if err != nil {
		return err
	}
	if r.curriculum, err = curriculum.New(schedule, training, r.log.Book(), evals); err != nil {
		return err
	}
	return r.countAttempts(ctx)
}

// begin starts the recorder and announces the attempt, with its configuration.
// run.started is the first event of an attempt, and the one whose arrival in
// the log makes the curriculum pose what is due.
func (r *recording) begin(ctx context.Context, c *circle, config string) error {
	r.config = config
	r.service = &curriculum.Service{Curriculum: r.curriculum, Bus: r.bus, Run: r.run, Source: r.source(events.StageCurriculum), Now: time.Now, Budget: r.budget}
	if err := r.settings.Bus.ApplyStreamLimit(ctx, r.bus, r.run); err != nil {
		return err
	}
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	r.trained.Store(int64(r.curriculum.Trained()))
	recorder, err := eventlog.NewRecorder(r.bus, r.log, eventlog.RecorderConfig{
		Run: r.run, Source: r.source(events.StageRecorder), Logger: r.logger.With("stage", events.StageRecorder), OnAppend: r.appended,
		KeepTokens: r.settings.KeepTokens,
	})
	if err != nil {
		return err
	}
	c.Go(recorder.Run)
	return r.publish(ctx, fmt.Sprintf("start-%04d", r.attempt), &events.RunStarted{
		Attempt: r.attempt, Steps: r.settings.steps(r.problems), Build: build(), Config: config,
		ProblemSet: r.settings.Data.Problems, Problems: r.problems,
		Code: r.start[events.RoleCode], Test: r.start[events.RoleTest],
	})
}

// appended poses what is due after events that have become part of the log.
func (r *recording) appended(ctx context.Context, appended []events.Message) error {
	for i := range appended {
		if appended[i].Type == events.TypeRunFinished && appended[i].Group == r.endGroup() {
			close(r.ended)
			return nil
		}
		if appended[i].Type == events.TypeRunStarted {
			if err := r.checkStarted(&appended[i]); err != nil {
				return err
			}
		}
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

// checkStarted refuses to go on where somebody else has begun this very attempt
// with another run: the first run.started stands, and the workers follow it.
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
	what := ""
	was, is, differ := settings.Difference(there, here, func(f *settings.Field) bool {
		return f.Change != settings.ChangeResume && f.Scope != settings.ScopePath
	})
	switch {
	case differ:
		what = fmt.Sprintf("--%s (%s there, %s here)", was.Key, was, is)
	case started.Problems != r.problems:
		what = "the number of training problems"
	case started.Steps != r.settings.steps(r.problems):
		what = "the number of steps"
	}
	for role, start := range map[events.Role]events.Checkpoint{events.RoleCode: started.Code, events.RoleTest: started.Test} {
		if what == "" && start.SHA256 != r.start[role].SHA256 {
			what = "the checkpoint that the " + string(role) + " model started from"
		}
	}
	if what == "" {
		return nil
	}
	return fmt.Errorf("the bus has another run of the name %s, which differs in %s: go on with it in its own directory, or choose another name and another directory than %s", r.run, what, r.dir)
}

func (r *recording) endGroup() string { return fmt.Sprintf("end-%04d", r.attempt) }

// reason says how an attempt ends that has finished or is stopped: one that used
// up its budget has more to do.
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

// finish publishes the end of the attempt and waits until it is in the log.
// recorder is where the recorder runs.
func (r *recording) finish(ctx context.Context, recorder *circle, reason string) error {
	err := r.publish(ctx, r.endGroup(), &events.RunFinished{Attempt: r.attempt, Steps: int(r.trained.Load()), Reason: reason})
	if err != nil {
		return err
	}
	select {
	case <-r.ended:
		return nil
	case <-recorder.Done():
		return nil // its error says more
	case <-ctx.Done():
		return errors.New("the end of the run could not be recorded in time; resuming it is safe")
	}
}

// catchUp brings the curriculum to the end of the log.
func (r *recording) catchUp(ctx context.Context) error {
	posing, _ := events.StageNamed(events.StageCurriculum)
	for record, err := range r.log.Scan(ctx, eventlog.ScanOptions{Types: posing.Consumes}) {
		if err != nil {
			return err
		}
		if err := r.service.Observe([]events.Message{record.Message}); err != nil {
			return err
		}
	}
	return nil
}

// countAttempts finds what came of the attempts at the run before this one. It
// fails when the run no longer has the checkpoints it started from: training on
// would give another run than the one that was started.
func (r *recording) countAttempts(ctx context.Context) error {
	r.attempt = 1
	for record, err := range r.log.Scan(ctx, eventlog.ScanOptions{Types: []events.Type{events.TypeRunStarted, events.TypeRunFinished}}) {
		if err != nil {
			return err
		}
		e, err := record.Decode()
		if err != nil {
			return err
		}
		if finished, ok := e.Payload.(*events.RunFinished); ok {
			r.completed = finished.Reason == events.RunCompleted && finished.Steps >= r.settings.steps(r.problems)
			continue
		}
		r.attempt++
		r.completed = false
		started := e.Payload.(*events.RunStarted)
		for role, was := range map[events.Role]events.Checkpoint{events.RoleCode: started.Code, events.RoleTest: started.Test} {
			if was.SHA256 != r.start[role].SHA256 {
				return fmt.Errorf("%s: model.safetensors is not the one the run started from (its SHA-256 was %s): put the original back, or start a new run",
					startPath(r.dir, role), was.SHA256)
			}
		}
	}
	return nil
}

// loadProblems returns the training problems and the evaluation made of the
// held-out ones.
func (r *recording) loadProblems(ctx context.Context) ([]events.Problem, curriculum.Evaluation, error) {
	options := problems.LoadOptions{
		OnBadRow: r.settings.Data.OnBadRow,
		Report:   func(bad *problems.BadRowError) { r.logger.Warn("row skipped", "error", bad) },
	}
	set, _, err := problems.ReadAll(ctx, r.settings.Data.Problems, options)
	if err != nil {
		return nil, nil, err
	}
	training := make([]events.Problem, len(set))
	for i := range set {
		training[i] = r.posable(&set[i]) // the curriculum takes golden tests off where the recipe needs none
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
	if n := r.settings.Evaluation.EvalProblems; n > 0 && n < len(heldout) {
		heldout = heldout[:n]
	}
	items := make([]evaluation.Item, len(heldout))
	for i := range heldout {
		items[i].Problem = r.posable(&heldout[i])
		for _, b := range heldout[i].Buggy {
			items[i].Buggy = append(items[i].Buggy, b.Code)
		}
	}
	groups, err := evaluation.Groups(curriculum.Tag(0), items, r.settings.evaluation())
	if err != nil {
		return nil, nil, err
	}
	return training, func(string) []events.ProblemPosed { return slices.Clone(groups) }, nil
}

// posable returns a problem with the golden tests that fit into an event.
func (r *recording) posable(p *problems.Problem) events.Problem {
	posable, omitted := p.Posable(true)
	if omitted > 0 {
		r.logger.Warn("golden tests left out: too large for an event", "problem", p.ID, "tests", omitted)
	}
	return posable
}

// startingPoint returns the checkpoint of version 0, which it puts into the run
// directory first: a run must not change when the directory it started from
// does.
func (r *recording) startingPoint(ctx context.Context, role events.Role, from string) (events.Checkpoint, error) {
	dir := startPath(r.dir, role)
	if _, err := os.Stat(dir); err == nil {
		return checkpoint.Describe(ctx, dir)
	}
	source, err := checkpointFiles(role, from)
	if err != nil {
		return events.Checkpoint{}, err
	}
	// Renamed into place whole, so that a kill leaves no half of it.
	partial := dir + ".partial"
	if err := errors.Join(os.RemoveAll(partial), os.MkdirAll(partial, 0o755)); err != nil {
		return events.Checkpoint{}, fmt.Errorf("starting checkpoint: %w", err)
	}
	if err := tiny.WriteCheckpoint(source, partial); err != nil {
		return events.Checkpoint{}, fmt.Errorf("starting checkpoint %s: %w", from, err)
	}
	if err := os.Rename(partial, dir); err != nil {
		return events.Checkpoint{}, fmt.Errorf("starting checkpoint: %w", err)
	}
	return checkpoint.Describe(ctx, dir)
}

// checkpointFiles returns the files of a checkpoint that the engine can open.
func checkpointFiles(role events.Role, from string) (fs.FS, error) {
	if from == "" {
		return tiny.Checkpoint(string(role))
	}
	engine, err := tiny.Open(from)
	if err != nil {
		return nil, fmt.Errorf("--%s-model: %w", role, err)
	}
	return os.DirFS(from), engine.Close()
}
