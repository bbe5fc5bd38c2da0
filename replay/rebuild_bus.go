package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codea1/events"
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
func RebuildFromBus(ctx context.Context, bus StoredBus, run, dir string, end BusEnd, options Options, progress func(done uint64)) (Rebuilt, error) {
	report := Rebuilt{Newest: make(map[events.Role]*events.PolicyUpdated)}
	has, err := bus.HasRun(ctx, run)
	if err == nil && !has {
		err = fmt.Errorf("run %s: %w", run, ErrNothingOnBus)
	}
	if err != nil {
		return report, err
	}
	err = intoEmpty(dir, func(partial string) error {
		target, err := Open(partial, options)
		if err != nil {
			return err
		}
		if err := report.read(ctx, bus, run, target, end, progress); err != nil {
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
func (report *Rebuilt) read(ctx context.Context, bus StoredBus, run string, target *Log, end BusEnd, progress func(done uint64)) (err error) {
	reader, err := bus.Read(ctx, events.ReadConfig{Run: run, From: events.Start})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	var batch []Entry
	size := 0
	flush := func() error {
		appended, err := target.Append(ctx, batch)
		if err != nil {
			return err
		}
		batch, size = batch[:0], 0
		return report.take(&appended)
	}
	for {
		last, _ := target.Last()
		left := rebuildBatch
		if end.Events > 0 {
			if last >= end.Events {
				return nil
			}
			left = int(min(uint64(left), end.Events-last))
		}
		m, position, err := next(ctx, reader, end.Quiet)
		if errors.Is(err, errQuiet) {
			return flush()
		}
		if err != nil {
			return err
		}
		batch = append(batch, Entry{Message: m, Position: position})
		if size += len(m.Data); len(batch) < left && size < rebuildBytes {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		if last, _ := target.Last(); progress != nil {
			progress(last)
		}
	}
}

// take counts what was left out, and keeps what a run needs besides its log.
func (report *Rebuilt) take(appended *Appended) error {
	for i := range appended.Conflicts {
		if appended.Conflicts[i].Descends() {
			report.Refused++
		}
	}
	for i := range appended.Messages {
		m := &appended.Messages[i]
		if m.Type != events.TypeRunStarted && m.Type != events.TypePolicyUpdated {
			continue
		}
		e, err := m.Decode()
		if err != nil {
			return err
		}
		report.keep(e)
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
