package fork

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
)

// BusEnd says where a rebuild from a bus ends: a stream has no end of its own.
// The log that comes out knows its position, so a recorder goes on from there
// whatever came later.
type BusEnd struct {
	Quiet  time.Duration // nothing has come for so long; required
	Events uint64        // or the log holds so many; 0 for no limit
}

// ErrNothingOnBus is returned for a run that a bus has no events of.
var ErrNothingOnBus = errors.New("the bus has no events of the run")

// StoredBus is what a rebuild needs of events.Broker.
type StoredBus interface {
	HasRun(ctx context.Context, run string) (bool, error)
	Read(ctx context.Context, config events.ReadConfig) (events.Reader, error)
}

// RebuildFromBus makes a log in dir out of nothing but the events of a run on a
// bus, as the run's recorder has made its own: in the same order, each once,
// and without those that a recorder leaves out. So index, Mistake Book, head
// and position come out the same as in the log that was lost, and so does the
// chain where the same build has written both. Nothing is published, and a run
// that is not on the bus, ErrNothingOnBus, leaves no stream there. dir must
// be empty or absent; a rebuild that fails leaves it so.
func RebuildFromBus(ctx context.Context, bus StoredBus, run, dir string, end BusEnd, options eventlog.Options) (Rebuilt, error) {
	report := Rebuilt{Newest: make(map[events.Role]*events.PolicyUpdated)}
	has, err := bus.HasRun(ctx, run)
	if err == nil && !has {
		err = fmt.Errorf("run %s: %w", run, ErrNothingOnBus)
	}
	if err != nil {
		return report, err
	}
	err = intoEmpty(dir, func(partial string) error {
		target, err := eventlog.Open(partial, options)
		if err != nil {
			return err
		}
		if err := report.read(ctx, bus, run, target, end); err != nil {
			return errors.Join(err, target.Close())
		}
		report.Events, report.Chain = target.Last()
		report.Tests = target.Book().Size()
		if report.Events == 0 {
			err = fmt.Errorf("run %s: %w", run, ErrNothingOnBus)
		}
		return errors.Join(err, target.Close())
	})
	return report, err
}

// read appends what a reader gives until the end.
func (report *Rebuilt) read(ctx context.Context, bus StoredBus, run string, target *eventlog.Log, end BusEnd) (err error) {
	reader, err := bus.Read(ctx, events.ReadConfig{Run: run, From: events.Start})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	batch := batches{log: target, appended: report.take}
	for {
		last, _ := target.Last()
		if end.Events > 0 && last+uint64(len(batch.entries)) >= end.Events {
			if len(batch.entries) == 0 {
				return nil
			}
			if err := batch.flush(ctx); err != nil {
				return err
			}
			continue // the log may have left out some of them
		}
		m, position, err := next(ctx, reader, end.Quiet)
		if errors.Is(err, errQuiet) {
			return batch.flush(ctx)
		}
		if err != nil {
			return err
		}
		if err := batch.add(ctx, eventlog.Incoming{Message: m, Position: position}); err != nil {
			return err
		}
	}
}

// take counts the events that were left out, and notes the others.
func (report *Rebuilt) take(appended *eventlog.Appended) error {
	for i := range appended.Conflicts {
		if appended.Conflicts[i].Descends() {
			report.Refused++
		}
	}
	for i := range appended.Messages {
		m := &appended.Messages[i]
		if err := report.note(m, m.Decode); err != nil {
			return err
		}
	}
	return nil
}

var errQuiet = errors.New("nothing has come")

// next is Reader.Next that waits no longer than quiet: errQuiet.
func next(ctx context.Context, reader events.Reader, quiet time.Duration) (events.Message, events.Position, error) {
	waiting, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	m, position, err := reader.Next(waiting)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = errQuiet
	}
	return m, position, err
}
