package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"codea1/events"
)

// errGoesOnOtherwise says that a run was resumed with another configuration.
var errGoesOnOtherwise = errors.New("the run goes on with another configuration")

// settleTime is how long no news of a run's attempts must have come before the
// newest is taken for the present one: who joins late reads all that were.
const settleTime = 300 * time.Millisecond

// attempts follows the attempts at a run, for a process that takes its
// configuration from them.
type attempts struct {
	run string

	mu      sync.Mutex
	now     attempt
	changed chan struct{} // closed with every change, and then another one
}

// attempt is the newest attempt at a run.
type attempt struct {
	started   *events.RunStarted // nil before the first
	completed bool               // it has trained every step
}

func newAttempts(run string) *attempts {
	return &attempts{run: run, changed: make(chan struct{})}
}

// follow reads the beginnings and ends of attempts until ctx ends.
func (a *attempts) follow(ctx context.Context, bus events.Bus) error {
	reader, err := bus.Read(ctx, events.ReadConfig{Run: a.run, Types: []events.Type{events.TypeRunStarted, events.TypeRunFinished}})
	if err != nil {
		return fmt.Errorf("attempts at run %s: %w", a.run, err)
	}
	defer reader.Close()
	for {
		m, _, err := reader.Next(ctx)
		if err != nil {
			return fmt.Errorf("attempts at run %s: %w", a.run, err)
		}
		e, err := m.Decode()
		if err != nil {
			return fmt.Errorf("attempts at run %s: event %s: %w", a.run, m.ID, err)
		}
		a.apply(e.Payload)
	}
}

func (a *attempts) apply(payload events.Payload) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch p := payload.(type) {
	case *events.RunStarted:
		a.now = attempt{started: p}
	case *events.RunFinished:
		if a.now.started == nil || p.Attempt != a.now.started.Attempt {
			return
		}
		a.now.completed = p.Reason == events.RunCompleted
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *attempts) look() (attempt, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now, a.changed
}

// settled waits for an attempt, and until there is no news of attempts.
func (a *attempts) settled(ctx context.Context) (attempt, error) {
	for {
		now, changed := a.look()
		var settled <-chan time.Time
		if now.started != nil {
			settled = time.After(settleTime)
		}
		select {
		case <-changed:
		case <-settled:
			return now, nil
		case <-ctx.Done():
			return attempt{}, ctx.Err()
		}
	}
}

// outlast returns nil once the run is completed, errGoesOnOtherwise when it has
// begun again with another configuration than the attempt at hand, and
// ctx.Err() when ctx ends first.
func (a *attempts) outlast(ctx context.Context, at *events.RunStarted) error {
	for {
		now, changed := a.look()
		if now.completed {
			return nil
		}
		if now.started != nil && (now.started.Config != at.Config || now.started.Problems != at.Problems) {
			return errGoesOnOtherwise
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
