package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"codea1/events"
)

// Bus is the part of a bus that a Follower uses.
type Bus interface {
	Read(ctx context.Context, config events.ReadConfig) (events.Reader, error)
}

// Follower applies the events of a run to a State and notifies subscribers.
// It is safe for concurrent use.
type Follower struct {
	course events.Course   // used by Follow alone
	before events.Position // of the next message; used by Follow alone

	mu          sync.RWMutex
	state       *State
	revision    int64 // changes
	following   bool
	bus         Bus           // the newest one that was followed
	newest      string        // ID of the newest event
	replaced    chan struct{} // closed by Replace
	subscribers map[chan struct{}]struct{}
}

// NewFollower returns a follower of an empty state.
func NewFollower() *Follower {
	return &Follower{course: events.NewCourse(), state: NewState(), subscribers: map[chan struct{}]struct{}{}, replaced: make(chan struct{})}
}

// SetBudget sets the longest time of the attempt, which no event carries.
func (f *Follower) SetBudget(budget time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Budget = budget
}

// SetPlace sets the words for the machine and the path of the report, which no
// event carries.
func (f *Follower) SetPlace(machine, report string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Machine, f.state.Report = machine, report
}

// Follow applies the events of a run after from, in order, until ctx ends, the
// bus is closed or the reader returns io.EOF, and returns nil then. It returns an error of the bus. A message
// that is no event is counted as quarantined, as the recorder does. Two calls must
// not run at the same time.
func (f *Follower) Follow(ctx context.Context, bus Bus, run string, from events.Position) error {
	reader, err := bus.Read(ctx, events.ReadConfig{Run: run, From: from, Malformed: true})
	if err != nil {
		return fmt.Errorf("dashboard: read run %s: %w", run, err)
	}
	defer reader.Close()
	f.setFollowing(true, bus)
	defer f.setFollowing(false, bus)
	f.before = from
	for {
		message, position, err := reader.Next(ctx)
		var malformed *events.MalformedError
		if errors.As(err, &malformed) {
			f.quarantine(err)
			f.before = position
			continue
		}
		if ctx.Err() != nil || errors.Is(err, events.ErrClosed) || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("dashboard: read run %s: %w", run, err)
		}
		f.apply(&message)
		f.before = position
	}
}

func (f *Follower) apply(message *events.Message) {
	event, err := message.Admit()
	if err == nil {
		err = f.course.Check(event.Payload)
	}
	if err != nil {
		f.quarantine(err)
		return
	}
	f.course.Apply(event.Payload)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.applyAfter(event, f.before)
	f.state.Buffer(message)
	f.newest = message.ID
	f.changed()
}

// Replace takes the state and the bus of another follower of the same run, which has
// ended.
func (f *Follower) Replace(other *Follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.state
	f.state, f.newest, f.bus = other.state, other.newest, other.bus
	f.state.Machine, f.state.Report, f.state.Budget, f.state.Quarantined = was.Machine, was.Report, was.Budget, was.Quarantined
	f.state.Replicas, f.state.refusals = was.Replicas, was.refusals // a log has none
	f.state.Series.renew(was.Series.clock + 1)
	close(f.replaced)
	f.replaced = make(chan struct{})
	f.changed()
}

// quarantine counts a message that is no event.
func (f *Follower) quarantine(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Quarantined++
	f.state.refusals = append(f.state.refusals, Refusal{f.before, brief(why.Error())})
	if len(f.state.refusals) > maxRefusals {
		f.state.refusals = slices.Delete(f.state.refusals, 0, 1)
	}
	f.changed()
}

// changed notifies every subscriber. A subscriber that has not read the last
// notification gets one for both changes. The caller holds mu.
func (f *Follower) changed() {
	f.revision++
	for s := range f.subscribers {
		select {
		case s <- struct{}{}:
		default:
		}
	}
}

func (f *Follower) setFollowing(on bool, bus Bus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.following, f.bus = on, bus
	f.changed()
}

// Following reports whether the follower is reading a bus.
func (f *Follower) Following() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.following
}

// View calls read with the state, which must not be kept or changed, and
// returns its revision, a number that grows with every change.
func (f *Follower) View(read func(*State)) (revision int64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	read(f.state)
	return f.revision
}

// Subscribe returns a channel that holds a value after each change of the state
// since the last receive, and at the start. The channel is never closed;
// unsubscribe removes it.
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

// Wait returns nil when until returns true for the state, or ctx.Err().
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
