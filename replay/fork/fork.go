package fork

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Config says what a fork is called and how it goes on.
type Config struct {
	At   uint64 // events shared: the first so many of the log
	Run  string // name of the new run
	Time time.Time
	// Configure changes configuration and steps of the new run from what was in
	// force at At; nil leaves them.
	Configure func(started *events.RunStarted) error
	Options   eventlog.Options // of the new log
}

// Forked says what Fork made.
type Forked struct {
	Origin  events.Origin
	Events  uint64        // in the new log: those shared, and its own run.started
	Chain   eventlog.Hash // of the last
	Tests   int           // in the Mistake eventlog.Book
	Attempt int           // of the new run, as its run.started says
	Config  string
	// Newest is the newest policy version of each role that the fork shares;
	// a role without one goes on from version 0.
	Newest map[events.Role]*events.PolicyUpdated
}

// ErrNotStarted is returned for a place in a log before its run was started.
var ErrNotStarted = errors.New("the run was not started there")

// ErrFewSteps is returned for a fork that would have trained more steps than it
// plans.
var ErrFewSteps = errors.New("too few steps are planned")

// Copy makes the log of a new run in dir, empty or absent, that begins with the
// first events of source. They keep order, time and payload; their run becomes
// the new one, and with it the IDs that follow from its name, so that the new
// log is as valid as any. After them stands a run.started that names the
// origin: CheckOrigins holds the shared events to it. What is open at the fork
// stays open. A fork that fails leaves nothing behind.
//
// The new log stands at no position of any bus until it is seeded.
func Copy(ctx context.Context, source *eventlog.Log, dir string, config Config, progress func(done uint64)) (Forked, error) {
	if err := events.ValidName(config.Run); err != nil {
		return Forked{}, fmt.Errorf("fork: run: %w", err)
	}
	if last, _ := source.Last(); config.At < 1 || config.At > last {
		return Forked{}, fmt.Errorf("fork after event %d of %d: %w", config.At, last, eventlog.ErrNotFound)
	}
	origin, err := eventlog.RunName(ctx, source)
	if err != nil {
		return Forked{}, err
	}
	if origin == config.Run {
		return Forked{}, fmt.Errorf("fork: the new run needs another name than %s", origin)
	}
	var forked Forked
	err = intoEmpty(dir, func(partial string) error {
		target, err := eventlog.Open(partial, config.Options)
		if err != nil {
			return err
		}
		forked, err = fork(ctx, source, target, renaming{origin, config.Run}, config, progress)
		return errors.Join(err, target.Close())
	})
	return forked, err
}

func fork(ctx context.Context, source, target *eventlog.Log, rename renaming, config Config, progress func(done uint64)) (Forked, error) {
	forked := Forked{Origin: events.Origin{Run: rename.from, Events: config.At}, Newest: make(map[events.Role]*events.PolicyUpdated)}
	var started *events.RunStarted
	batch := batches{log: target}
	for r, err := range source.Read(ctx, eventlog.ReadOptions{To: config.At}) {
		if err != nil {
			return forked, err
		}
		switch r.Message.Type {
		case events.TypeRunStarted, events.TypePolicyUpdated:
			e, err := r.Decode()
			if err != nil {
				return forked, err
			}
			switch p := e.Payload.(type) {
			case *events.RunStarted:
				started = p
				forked.Attempt++
			case *events.PolicyUpdated:
				forked.Newest[p.Role] = p
			}
		}
		forked.Origin.Chain = r.Chain.String()
		r.Message = rename.apply(r.Message)
		if err := batch.add(ctx, r.Incoming(events.Start)); err != nil {
			return forked, err
		}
		if progress != nil {
			progress(r.Seq)
		}
	}
	if started == nil {
		return forked, fmt.Errorf("fork after event %d: %w", config.At, ErrNotStarted)
	}
	own := *started
	forked.Attempt++
	own.Attempt, own.Origin = forked.Attempt, &forked.Origin
	if config.Configure != nil {
		if err := config.Configure(&own); err != nil {
			return forked, err
		}
	}
	for _, role := range bothRoles {
		if u := forked.Newest[role]; u != nil && u.Version > own.Steps {
			return forked, fmt.Errorf("%w: %d, and %d of the %s model were trained by event %d; set more, or fork before",
				ErrFewSteps, own.Steps, u.Version, role, config.At)
		}
	}
	forked.Config = own.Config
	m, err := events.Encode(events.New(config.Run, fmt.Sprintf("start-%04d", own.Attempt), "fork", config.Time, &own))
	if err != nil {
		return forked, err
	}
	if err := errors.Join(batch.add(ctx, eventlog.Incoming{Message: m}), batch.flush(ctx)); err != nil {
		return forked, err
	}
	if forked.Events, forked.Chain = target.Last(); forked.Events != config.At+1 {
		return forked, fmt.Errorf("fork of %s: %d of %d events have entered the new log", rename.from, forked.Events, config.At+1)
	}
	forked.Tests = target.Book().Size()
	return forked, nil
}
