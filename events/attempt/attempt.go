// Package attempt follows the attempts at a run, for processes that take the
// run's configuration from run.started.
package attempt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"codea1/events"
)

// ErrConfigurationChanged says that the run was resumed with another
// configuration.
var ErrConfigurationChanged = errors.New("the run was resumed with another configuration")

const (
	// settleTime is how long the newest attempt must have been the newest one
	// before it counts as the present one: a late reader receives all earlier
	// attempts first.
	settleTime = 300 * time.Millisecond
	// pollInterval is the time between two questions whether a run has begun.
	pollInterval = 500 * time.Millisecond
)

// AwaitRun waits until a run has begun. Only the recorder of a run creates it on
// the bus, with its number of copies and its limits: a mistyped name leaves
// nothing on the bus.
func AwaitRun(ctx context.Context, bus events.Broker, run string, logger *slog.Logger) error {
	for logged := false; ; logged = true {
		has, err := bus.HasRun(ctx, run)
		if err != nil || has {
			return err
		}
		if !logged {
			logger.Info("waiting for the recorder: the run has not begun", "run", run)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}

// Follower knows the newest attempt at a run. Its methods may be called by many
// goroutines.
type Follower struct {
	run string

	mu        sync.Mutex
	started   *events.RunStarted // of the newest attempt; nil before the first one
	completed bool               // the newest attempt has trained every step
	changed   chan struct{}      // closed and replaced at every change
}

// NewFollower returns a follower of a run's attempts.
func NewFollower(run string) *Follower {
	return &Follower{run: run, changed: make(chan struct{})}
}

// Run reads the beginnings and ends of attempts until ctx ends.
func (f *Follower) Run(ctx context.Context, bus events.Bus) error {
	reader, err := bus.Read(ctx, events.ReadConfig{Run: f.run, Types: events.CourseTypes()})
	if err != nil {
		return fmt.Errorf("attempts at run %s: %w", f.run, err)
	}
	defer reader.Close()
	course := events.NewCourse()
	for {
		m, _, err := reader.Next(ctx)
		if err != nil {
			return fmt.Errorf("attempts at run %s: %w", f.run, err)
		}
		// The recorder reports any other message.
		if e, err := m.Admit(); err == nil && course.Check(e.Payload) == nil {
			course.Apply(e.Payload)
			f.apply(e.Payload)
		}
	}
}

func (f *Follower) apply(payload events.Payload) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch p := payload.(type) {
	case *events.RunStarted:
		f.started, f.completed = p, false
	case *events.RunFinished:
		if f.started == nil || p.Attempt != f.started.Attempt {
			return
		}
		f.completed = p.Reason == events.RunCompleted
	default:
		return
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *Follower) newest() (started *events.RunStarted, completed bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started, f.completed, f.changed
}

// Present waits until there is an attempt and no newer one arrives, and returns
// its run.started and whether it is completed.
func (f *Follower) Present(ctx context.Context) (started *events.RunStarted, completed bool, err error) {
	for {
		started, completed, changed := f.newest()
		var settled <-chan time.Time
		if started != nil {
			settled = time.After(settleTime)
		}
		select {
		case <-changed:
		case <-settled:
			return started, completed, nil
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// Wait returns nil when the run is completed, ErrConfigurationChanged when it
// was resumed with another configuration than that of present, and ctx.Err()
// when ctx ends first.
func (f *Follower) Wait(ctx context.Context, present *events.RunStarted) error {
	for {
		started, completed, changed := f.newest()
		if completed {
			return nil
		}
		if started != nil && (started.Config != present.Config || started.Problems != present.Problems) {
			return ErrConfigurationChanged
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
