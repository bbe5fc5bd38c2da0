package fork

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Config configures Copy.
type Config struct {
	At   uint64 // number of shared events: the first events of the log
	Run  string // name of the new run
	Time time.Time
	// Configure changes the configuration and the steps of the new run, which are
	// at first those of the origin after event At; nil changes nothing.
	Configure func(started *events.RunStarted) error
	Options   eventlog.Options // of the new log
}

// Forked is the result of Copy. Its NewLog.Newest holds the versions from which
// the new run continues; a role that is not in it continues from version 0.
type Forked struct {
	NewLog
	Origin events.Origin
}

// ErrNotStarted is returned for a position before the first run.started event.
var ErrNotStarted = errors.New("no run.started event comes before this position")

// ErrFewSteps is returned for a fork that has trained more steps than it plans.
var ErrFewSteps = errors.New("too few steps are planned")

// Copy makes the log of a new run in dir, which must be empty or absent, from the
// first events of source. The events keep order, time and payload. They get the
// name of the new run and the IDs that derive from it, so that the new log is
// valid. Copy appends a run.started event that names the origin; CheckOrigins
// compares the shared events with it. Groups in flight stay in flight. After a
// failure dir is empty.
//
// The new log has no position on a bus until Seed has filled one.
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
		return Forked{}, fmt.Errorf("fork: the origin has the name %s too; choose another name", origin)
	}
	forked := Forked{Origin: events.Origin{Run: origin, Events: config.At}}
	err = forked.makeLog(dir, config.Options, func(target *eventlog.Log) error {
		return forked.fill(ctx, source, target, config, progress)
	})
	return forked, err
}

func (f *Forked) fill(ctx context.Context, source, target *eventlog.Log, config Config, progress func(done uint64)) error {
	rename := renaming{f.Origin.Run, config.Run}
	err := f.copy(ctx, source, target, config.At, func(r *eventlog.Record) eventlog.Incoming {
		f.Origin.Chain = r.Chain.String()
		r.Message = rename.apply(r.Message)
		return r.Incoming(events.Start)
	}, progress)
	if err != nil {
		return err
	}
	if f.started == nil {
		return fmt.Errorf("fork after event %d: %w", config.At, ErrNotStarted)
	}
	own := *f.started
	own.Attempt, own.Origin = f.Attempts+1, &f.Origin
	if config.Configure != nil {
		if err := config.Configure(&own); err != nil {
			return err
		}
	}
	for _, role := range bothRoles {
		if u := f.Newest[role]; u != nil && u.Version > own.Steps {
			return fmt.Errorf("%w: %d, and %d of the %s model were trained by event %d; set more, or fork before",
				ErrFewSteps, own.Steps, u.Version, role, config.At)
		}
	}
	m, err := events.Encode(events.New(config.Run, fmt.Sprintf("start-%04d", own.Attempt), "fork", config.Time, &own))
	if err != nil {
		return err
	}
	if _, err := target.Append(ctx, []eventlog.Incoming{{Message: m}}); err != nil {
		return err
	}
	if last, _ := target.Last(); last != config.At+1 {
		return fmt.Errorf("fork of %s: the new log has %d events, want %d", rename.from, last, config.At+1)
	}
	return f.note(&m, m.Decode)
}
