package dashboard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"codea1/events"
)

// Bus is what a Follower needs of a bus.
type Bus interface {
	Read(ctx context.Context, config events.ReadConfig) (events.Reader, error)
}

// Follower keeps a State up with a run and tells subscribers that it changed.
// It is safe for concurrent use.
type Follower struct {
	mu          sync.RWMutex
	state       *State
	revision    int64 // events applied
	following   bool
	subscribers map[chan struct{}]struct{}
}

// NewFollower returns a follower that follows nothing yet.
func NewFollower() *Follower {
	return &Follower{state: NewState(), subscribers: map[chan struct{}]struct{}{}}
}

// SetBudget tells how long the attempt that follows may take; events do not.
func (f *Follower) SetBudget(budget time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Budget = budget
}

// Follow applies the events of a run after from, in order, until ctx ends,
// the bus is closed (nil for both) or the bus fails. An event that cannot be
// decoded is counted and passed over: a view must not end where a run goes on.
// It must not be called again before it has returned.
func (f *Follower) Follow(ctx context.Context, bus Bus, run string, from events.Position) error {
	reader, err := bus.Read(ctx, events.ReadConfig{Run: run, From: from})
	if err != nil {
		return fmt.Errorf("dashboard: read run %s: %w", run, err)
	}
	defer reader.Close()
	f.setFollowing(true)
	defer f.setFollowing(false)
	for {
		message, _, err := reader.Next(ctx)
		if ctx.Err() != nil || errors.Is(err, events.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("dashboard: read run %s: %w", run, err)
		}
		f.apply(&message)
	}
}

func (f *Follower) apply(message *events.Message) {
	event := &events.Event{Envelope: message.Envelope}
	readable := true
	if Needs(message.Type) {
		if decoded, err := message.Decode(); err != nil {
			readable = false
		} else {
			event = decoded
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Apply(event)
	switch {
	case !Needs(message.Type):
		f.state.Hold(message)
	case !readable:
		f.state.Unreadable++
	}
	f.changed()
}

// changed tells every subscriber; one that has not looked since the last time
// will see both changes at once. The caller holds mu.
func (f *Follower) changed() {
	f.revision++
	for s := range f.subscribers {
		select {
		case s <- struct{}{}:
		default:
		}
	}
}

func (f *Follower) setFollowing(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.following = on
	f.changed()
}

// Following reports whether the follower is reading a bus.
func (f *Follower) Following() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.following
}

// View calls look with the state, which must not be kept or changed, and
// returns its revision: a number that grows with every change.
func (f *Follower) View(look func(*State)) (revision int64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	look(f.state)
	return f.revision
}

// Subscribe returns a channel that holds a value whenever the state has
// changed since the last receive, from the start on. The channel is never
// closed; unsubscribe forgets it.
func (f *Follower) Subscribe() (changes <-chan struct{}, unsubscribe func()) {
	c := make(chan struct{}, 1)
	c <- struct{}{}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscribers[c] = struct{}{}
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subscribers, c)
	}
}

// Wait returns once the state is as until wants it, or with ctx.Err().
func (f *Follower) Wait(ctx context.Context, until func(*State) bool) error {
	changes, unsubscribe := f.Subscribe()
	defer unsubscribe()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changes:
		}
		reached := false
		f.View(func(s *State) { reached = until(s) })
		if reached {
			return nil
		}
	}
}
