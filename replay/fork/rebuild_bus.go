package fork

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
)

// ErrNothingOnBus is returned for a run without events on a bus.
var ErrNothingOnBus = errors.New("the bus has no events of the run")

// StoredBus is the part of events.Broker that RebuildFromBus uses.
type StoredBus interface {
	HasRun(ctx context.Context, run string) (bool, error)
	Read(ctx context.Context, config events.ReadConfig) (events.Reader, error)
}

// RebuildFromBus makes a log in dir from the events of a run on a bus, as the
// run's recorder does: in the same order, each event once, without the events
// that a recorder refuses. Index, Mistake Book, head and position are the same
// as in the recorder's log. The chain hash is the same if the same build wrote
// both logs.
//
// A bus has no end: the rebuild ends when no event comes for the time quiet. A
// recorder continues from the position of the new log. RebuildFromBus publishes
// nothing. For a run that is not on the bus it returns ErrNothingOnBus and does
// not create the run. dir must be empty or absent; after a failure it is so
// still. It calls progress with the number of messages read and that of all, on a bus
// that knows it.
func RebuildFromBus(ctx context.Context, bus StoredBus, run, dir string, quiet time.Duration, options eventlog.Options, progress func(done, total uint64)) (Rebuilt, error) {
	var report Rebuilt
	nothing := fmt.Errorf("run %s: %w", run, ErrNothingOnBus)
	has, err := bus.HasRun(ctx, run)
	if err != nil {
		return report, err
	}
	if !has {
		return report, nothing
	}
	err = report.makeLog(dir, options, func(target *eventlog.Log) error {
		err := report.read(ctx, bus, run, target, quiet, progress)
		if last, _ := target.Last(); err == nil && last == 0 {
			err = nothing
		}
		return err
	})
	return report, err
}

// read appends the events of a run until none comes for the time quiet.
func (report *Rebuilt) read(ctx context.Context, bus StoredBus, run string, target *eventlog.Log, quiet time.Duration, progress func(done, total uint64)) (err error) {
	reader, err := bus.Read(ctx, events.ReadConfig{Run: run, From: events.Start, Malformed: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	batch := batches[eventlog.Incoming]{send: func(ctx context.Context, entries []eventlog.Incoming) error {
		appended, err := target.Append(ctx, entries)
		if err != nil {
			return err
		}
		return report.count(&appended)
	}}
	for done := uint64(1); ; done++ {
		waiting, cancel := context.WithTimeout(ctx, quiet)
		next, err := eventlog.Next(waiting, reader)
		cancel()
		if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return batch.flush(ctx)
		}
		if err != nil {
			return err
		}
		if err := batch.add(ctx, next, len(next.Message.Data)); err != nil {
			return err
		}
		if lagging, ok := reader.(events.Lagging); ok && progress != nil {
			progress(done, done+uint64(lagging.Behind()))
		}
	}
}

// count counts the refused events and notes the others.
func (report *Rebuilt) count(appended *eventlog.Appended) error {
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
