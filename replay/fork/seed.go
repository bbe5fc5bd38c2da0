package fork

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
)

// SeedBus is what seeding a bus from a log, and a rebuild from one, need of
// events.Broker.
type SeedBus interface {
	eventlog.Bus
	StoredBus
	Consume(ctx context.Context, config events.ConsumeConfig) (events.Consumer, error)
	Lag(ctx context.Context, run, name string) (events.Lag, error)
}

// WorkSet is a set of competing consumers of a run.
type WorkSet struct {
	Name  string
	Types []events.Type
}

// Seeded says where a log stands on the bus it was published on.
type Seeded struct {
	Events uint64
	End    events.Position // after the last of them
	// Positions are those after the events that were asked for; events.Start
	// after event 0.
	Positions map[uint64]events.Position
	Done      uint64 // deliveries answered: of what the log shows to be worked on
	Open      uint64 // deliveries left to the workers
}

// ForeignEventError says that a bus has other events of a run than its log.
type ForeignEventError struct {
	Run  string
	Seq  uint64 // the event of the log
	Have string // ID of what is in its place on the bus
}

func (e *ForeignEventError) Error() string {
	return fmt.Sprintf("run %s: the bus has event %s where the log has event %d: it is not empty; remove the run from the bus first, or choose another name",
		e.Run, e.Have, e.Seq)
}

// Seed publishes the events of a log, in order, on a bus that has none of the
// run. A bus that an interrupted Seed has left is seeded to the end.
//
// Positions of the bus the events came from mean nothing on this one: Seed
// reads back what it has published, which has to be the log, and returns the
// positions after the last one and after those named by marks. Rebase makes the
// log stand at the last. And the workers would find every
// event of the past on a new bus, so Seed joins each of their sets and answers
// what the log shows an effect of. What is left to them is what was open.
//
// progress, unless nil, hears how many events have been published.
func Seed(ctx context.Context, log *eventlog.Log, bus SeedBus, sets []WorkSet, marks []uint64, progress func(done uint64)) (Seeded, error) {
	run, err := eventlog.RunName(ctx, log)
	if err != nil {
		return Seeded{}, err
	}
	if err := checkUntrained(ctx, log); err != nil {
		return Seeded{}, fmt.Errorf("seed run %s: %w", run, err)
	}
	seeded := Seeded{Positions: map[uint64]events.Position{0: events.Start}}
	open := newOpenWork(sets)
	if seeded.Events, err = publishAll(ctx, log, bus, open, progress); err != nil {
		return Seeded{}, fmt.Errorf("seed run %s: %w", run, err)
	}
	for _, seq := range marks {
		seeded.Positions[seq] = events.Start
	}
	if err := readBack(ctx, log, bus, run, &seeded); err != nil {
		return Seeded{}, fmt.Errorf("seed run %s: %w", run, err)
	}
	for _, set := range sets {
		if err := settle(ctx, log, bus, run, set, open, &seeded); err != nil {
			return Seeded{}, fmt.Errorf("seed run %s: consumers %s: %w", run, set.Name, err)
		}
	}
	return seeded, nil
}

// checkUntrained returns a *TokensError if a step that is still to be trained
// has lost its tokens.
func checkUntrained(ctx context.Context, log eventlog.Reader) error {
	updates, err := eventlog.Updates(ctx, log)
	if err != nil {
		return err
	}
	return checkTokens(ctx, log, eventlog.Trained(updates)+1, math.MaxInt)
}

// openWork are the events of a log that its workers are to work on and that
// nothing follows from.
type openWork struct {
	types map[events.Type]bool // that workers take
	ids   map[string]bool
}

func newOpenWork(sets []WorkSet) *openWork {
	o := &openWork{types: make(map[events.Type]bool), ids: make(map[string]bool)}
	for _, set := range sets {
		for _, t := range set.Types {
			o.types[t] = true
		}
	}
	return o
}

// met takes an event of the log, in order.
func (o *openWork) met(m *events.Message) {
	delete(o.ids, m.CausationID)
	if o.types[m.Type] {
		o.ids[m.ID] = true
	}
}

func publishAll(ctx context.Context, log eventlog.Reader, bus SeedBus, open *openWork, progress func(done uint64)) (last uint64, err error) {
	last, _ = log.Last()
	var batch []events.Message
	size := 0
	for r, err := range log.Read(ctx, eventlog.ReadOptions{To: last}) {
		if err != nil {
			return 0, err
		}
		open.met(&r.Message)
		batch = append(batch, r.Message)
		size += len(r.Message.Data)
		if len(batch) < batchEvents && size < batchBytes && r.Seq < last {
			continue
		}
		if err := bus.Publish(ctx, batch...); err != nil {
			return 0, err
		}
		batch, size = batch[:0], 0
		if progress != nil {
			progress(r.Seq)
		}
	}
	return last, nil
}

// readBack reads the run from its beginning, compares it with the log, and
// fills in the positions.
func readBack(ctx context.Context, log eventlog.Reader, bus SeedBus, run string, seeded *Seeded) (err error) {
	reader, err := bus.Read(ctx, events.ReadConfig{Run: run, From: events.Start})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for r, err := range log.Read(ctx, eventlog.ReadOptions{To: seeded.Events}) {
		if err != nil {
			return err
		}
		m, position, err := reader.Next(ctx)
		if err != nil {
			return fmt.Errorf("read back event %d: %w", r.Seq, err)
		}
		if m.ID != r.Message.ID || m.Encoding != r.Message.Encoding || !bytes.Equal(m.Data, r.Message.Data) {
			return &ForeignEventError{run, r.Seq, m.ID}
		}
		if _, wanted := seeded.Positions[r.Seq]; wanted {
			seeded.Positions[r.Seq] = position
		}
		seeded.End = position
	}
	return nil
}

const (
	settleBatch = 64
	// settleOpen bounds the deliveries of a set that are left unanswered while
	// the others are: the groups on their way.
	settleOpen = 1 << 16
	// settleWait is how long a delivery of an interrupted Seed stays taken. One
	// that is left open for longer comes again, and is known by its ID.
	settleWait = time.Minute
)

// settle takes every event of a set and answers for those that the log shows an
// effect of. The others are given back.
func settle(ctx context.Context, log *eventlog.Log, bus SeedBus, run string, set WorkSet, work *openWork, seeded *Seeded) (err error) {
	consumer, err := bus.Consume(ctx, events.ConsumeConfig{Run: run, Name: set.Name, Types: set.Types, AckWait: settleWait, MaxInFlight: settleOpen})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, consumer.Close()) }()
	lag, err := bus.Lag(ctx, run, set.Name)
	if err != nil {
		return err
	}
	open := make(map[string]events.Delivery)
	for left := lag.Pending + lag.InFlight; left > 0; {
		deliveries, err := consumer.Fetch(ctx, settleBatch, 0)
		if err != nil {
			return err
		}
		for _, d := range deliveries {
			id := d.Message().ID
			if _, again := open[id]; again {
				open[id] = d
				continue
			}
			left--
			worked := !work.ids[id]
			if worked { // unless it came to the bus after the log
				if worked, err = log.Has(id); err != nil {
					return err
				}
			}
			if !worked {
				open[id] = d
				continue
			}
			if err := d.Ack(ctx); err != nil {
				return err
			}
			seeded.Done++
		}
		if len(open) > settleOpen-settleBatch {
			return fmt.Errorf("%d events have no effect yet, over the limit", len(open))
		}
	}
	for _, d := range open {
		if err := d.Retry(ctx, 0); err != nil {
			return err
		}
	}
	seeded.Open += uint64(len(open))
	return nil
}
