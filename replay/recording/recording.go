// Package recording is one attempt at a run, as its recorder sees it: `train` and the
// stage recorder have one.
//
// It owns the number of the attempt, its run.started and run.finished, and the recorder
// that appends the events of the bus to the log. It must not know how problems are
// chosen: after each append it calls the Curriculum. Start reading at Attempt.
package recording

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"codea1/events"
	"codea1/events/process"
	"codea1/events/rundir"
	"codea1/events/services"
	"codea1/replay/eventlog"
)

// Curriculum poses problems.
type Curriculum interface {
	// Observe takes events that the log has had before.
	Observe(messages []events.Message) error
	// OnAppend takes events that were appended to the log, and poses the problems that are
	// due.
	OnAppend(ctx context.Context, messages []events.Message) error
	// Trained returns the trained steps.
	Trained() int
	// Finished reports whether every step is trained that was planned or that the budget
	// allows.
	Finished() bool
}

// Config says what an attempt records.
type Config struct {
	Process    *process.Process
	Log        *eventlog.Log
	KeepTokens int
	// Differences describes the settings that differ between two configurations of
	// run.started; empty for none that matters.
	Differences func(there, here string) (string, error)
}

// Attempt is one attempt at a run. A run has one at a time.
type Attempt struct {
	Config
	Number    int  // from 1
	Completed bool // by an earlier attempt

	curriculum  Curriculum
	planned     events.RunStarted // of this attempt
	stopBeating func()            // ends the heartbeats and waits for the last one

	trained  atomic.Int64  // steps; only the recorder may use the curriculum
	ending   atomic.Bool   // run.finished is published, or will be
	finished chan struct{} // closed when Curriculum.Finished
	ended    chan struct{} // closed when run.finished of this attempt is in the log
}

// Next reads the earlier attempts at a run from its log, and returns the next one. steps
// are those that it plans, start is version 0 of each model. Next fails when the run no
// longer has the checkpoints that it started from, because training would then continue
// another run. last is the newest run.started; nil for none.
func Next(ctx context.Context, config Config, steps int, start map[events.Role]events.Checkpoint) (a *Attempt, last *events.RunStarted, err error) {
	a = &Attempt{Config: config, Number: 1, finished: make(chan struct{}), ended: make(chan struct{})}
	for record, err := range a.Log.Read(ctx, eventlog.ReadOptions{Types: []events.Type{events.TypeRunStarted, events.TypeRunFinished}}) {
		if err != nil {
			return nil, nil, err
		}
		if record.Message.Type == events.TypeRunStarted {
			a.Number++
			a.Completed = false
		}
		e, err := record.Decode()
		if eventlog.IsUnreadable(err) {
			continue // logs of earlier builds may have such an event
		}
		if err != nil {
			return nil, nil, err
		}
		if finished, ok := e.Payload.(*events.RunFinished); ok {
			a.Completed = finished.Reason == events.RunCompleted && finished.Steps >= steps
			continue
		}
		started := e.Payload.(*events.RunStarted)
		for role, now := range start {
			if was := started.Start(role).SHA256; was != now.SHA256 {
				return nil, nil, fmt.Errorf("%s: the weights are not those that the run started from (its SHA-256 was %s): restore the original, or start a new run",
					rundir.Start(a.Process.Dir, role), was)
			}
		}
		last = started
	}
	return a, last, nil
}

// Begin starts the recorder and publishes run.started. It is the first event of an
// attempt, and its arrival in the log makes the curriculum pose the problems that are due.
func (a *Attempt) Begin(ctx context.Context, g *services.Group, c Curriculum, started events.RunStarted) error {
	a.curriculum, a.planned = c, started
	a.planned.Attempt = a.Number
	if err := a.catchUp(ctx); err != nil {
		return err
	}
	a.trained.Store(int64(c.Trained()))
	p := a.Process
	meter, err := p.Meter(events.StageRecorder)
	if err != nil {
		return err
	}
	logger := p.Logger.With("stage", events.StageRecorder)
	recorder, err := eventlog.NewRecorder(process.FirstCounts{Broker: p.Bus, Logger: logger}, a.Log, eventlog.RecorderConfig{
		Run: p.Run, Source: p.Source(events.StageRecorder), Logger: logger, OnAppend: a.appended, KeepTokens: a.KeepTokens, Meter: meter,
	})
	if err != nil {
		return err
	}
	g.Go(recorder.Run)
	beating, stop := context.WithCancel(g.Context())
	silent := make(chan struct{})
	a.stopBeating = func() { stop(); <-silent }
	g.Go(func(context.Context) error { defer close(silent); return meter.Run(beating) })
	return p.PublishInTurn(ctx, fmt.Sprintf("start-%04d", a.Number), a.Number > 1, &a.planned)
}

// Finished is closed when every step is trained that was planned or that the budget allows.
func (a *Attempt) Finished() <-chan struct{} { return a.finished }

// Trained returns the trained steps.
func (a *Attempt) Trained() int { return int(a.trained.Load()) }

// appended poses the problems that are due after events were appended to the log.
func (a *Attempt) appended(ctx context.Context, appended []events.Message) error {
	for i := range appended {
		if appended[i].Type == events.TypeRunFinished && appended[i].Group == a.endGroup() {
			close(a.ended)
		}
		if appended[i].Type == events.TypeRunStarted {
			if err := a.checkStarted(&appended[i]); err != nil {
				return err
			}
		}
	}
	if a.ending.Load() {
		return nil
	}
	was := a.curriculum.Finished()
	if err := a.curriculum.OnAppend(ctx, appended); err != nil {
		return err
	}
	a.trained.Store(int64(a.curriculum.Trained()))
	if a.curriculum.Finished() && !was {
		close(a.finished)
	}
	return nil
}

// checkStarted returns an error when another process has begun this attempt with
// other settings. The first run.started is the valid one: the workers follow it.
func (a *Attempt) checkStarted(m *events.Message) error {
	e, err := m.Decode()
	if err != nil {
		return err
	}
	started := e.Payload.(*events.RunStarted)
	if started.Attempt != a.Number {
		return nil
	}
	what, err := a.Differences(started.Config, a.planned.Config)
	if err != nil {
		return err
	}
	switch {
	case what != "":
	case started.Problems != a.planned.Problems:
		what = "the number of training problems"
	case started.Steps != a.planned.Steps:
		what = "the number of steps"
	}
	for _, role := range a.Process.Models.Roles() {
		if what == "" && started.Start(role).SHA256 != a.planned.Start(role).SHA256 {
			what = "the checkpoint that the " + string(role) + " model started from"
		}
	}
	if what == "" {
		return nil
	}
	return fmt.Errorf("the bus has another run with the name %s, which differs in %s: resume that run in its own directory, or choose another name and another directory than %s", a.Process.Run, what, a.Process.Dir)
}

func (a *Attempt) endGroup() string { return fmt.Sprintf("end-%04d", a.Number) }

// Reason returns why the attempt ends. An attempt that used up its budget before
// the planned steps is stopped, not completed.
func (a *Attempt) Reason() string {
	select {
	case <-a.finished:
		if a.Trained() >= a.planned.Steps {
			return events.RunCompleted
		}
	default:
	}
	return events.RunStopped
}

// Finish publishes the end of the attempt and waits until the log has it.
// recorder is the group in which the recorder runs.
func (a *Attempt) Finish(ctx context.Context, recorder *services.Group, reason string) error {
	a.ending.Store(true)
	a.stopBeating() // run.finished is the recorder's last event
	err := a.Process.PublishInTurn(ctx, a.endGroup(), true, &events.RunFinished{Attempt: a.Number, Steps: a.Trained(), Reason: reason})
	if err != nil && ctx.Err() == nil {
		return err
	}
	select {
	case <-a.ended:
		return nil
	case <-recorder.Done():
		return nil // stopping the group returns its error
	case <-ctx.Done():
		return errors.New("the end of the attempt was not recorded in time; the run can be resumed")
	}
}

// catchUp brings the curriculum to the end of the log.
func (a *Attempt) catchUp(ctx context.Context) error {
	posing, _ := a.Process.Models.Stage(events.StageCurriculum)
	for record, err := range a.Log.Read(ctx, eventlog.ReadOptions{Types: posing.Consumes}) {
		if err != nil {
			return err
		}
		if err := a.curriculum.Observe([]events.Message{record.Message}); err != nil {
			return err
		}
	}
	return nil
}
