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

// SeedBus is the part of events.Broker that Seed and RebuildFromBus use.
type SeedBus interface {
	events.Bus
	StoredBus
}

// Seeded is the result of Seed: the positions of a log's events on the bus.
type Seeded struct {
	Events uint64
	End    events.Position // after the last event
	// Positions holds the position after each mark; events.Start for event 0.
	Positions map[uint64]events.Position
	Open      uint64 // deliveries left to the workers
}

// ForeignEventError is returned for a bus with other events of a run than the
// log has.
type ForeignEventError struct {
	Run  string
	Seq  uint64 // the event of the log
	Have string // ID of the event on the bus at its position
}

func (e *ForeignEventError) Error() string {
	return fmt.Sprintf("run %s: the bus has event %s at the position of event %d of the log; remove the run from the bus, or choose another name",
		e.Run, e.Have, e.Seq)
}

// Seed publishes the events of a log, in order, on a bus without events of the
// run. A Seed that was interrupted can be repeated.
//
// The positions of the log's old bus are not valid on the new one. Seed reads the
// events back, compares them with the log, and returns the position after the last
// event and after each of the marks. The caller sets the log's position with
// Rebase.
//
// A new bus delivers every event to the workers. So Seed joins each worker set and
// acknowledges the events that have an effect in the log. The workers get the
// others.
//
// progress, unless nil, gets the number of published events.
func Seed(ctx context.Context, log *eventlog.Log, bus SeedBus, marks []uint64, progress func(done uint64)) (Seeded, error) {
	run, err := eventlog.RunName(ctx, log)
	if err != nil {
		return Seeded{}, err
	}
	s := seeding{log: log, bus: bus, run: run, open: make(map[string]bool)}
	if err := s.seed(ctx, marks, progress); err != nil {
		return Seeded{}, fmt.Errorf("seed run %s: %w", run, err)
	}
	return s.seeded, nil
}

type seeding struct {
	log    *eventlog.Log
	bus    SeedBus
	run    string
	open   map[string]bool // IDs of the events for workers without an effect in the log
	seeded Seeded
}

func (s *seeding) seed(ctx context.Context, marks []uint64, progress func(done uint64)) error {
	// A step that is still to be trained needs its tokens.
	trained, err := eventlog.Trained(ctx, s.log)
	if err != nil {
		return err
	}
	if err := checkTokens(ctx, s.log, trained+1, math.MaxInt); err != nil {
		return err
	}
	models, err := eventlog.Models(ctx, s.log)
	if err != nil {
		return err
	}
	s.seeded.Positions = map[uint64]events.Position{0: events.Start}
	for _, seq := range marks {
		s.seeded.Positions[seq] = events.Start
	}
	if err := s.publish(ctx, models.Workers(), progress); err != nil {
		return err
	}
	if err := s.readBack(ctx); err != nil {
		return err
	}
	for _, worker := range models.Workers() {
		if err := s.settle(ctx, worker); err != nil {
			return fmt.Errorf("worker set %s: %w", worker.Name, err)
		}
	}
	return nil
}

func (s *seeding) publish(ctx context.Context, workers []events.Stage, progress func(done uint64)) error {
	forWorkers := make(map[events.Type]bool)
	for _, worker := range workers {
		for _, t := range worker.Consumes {
			forWorkers[t] = true
		}
	}
	batch := batches[events.Message]{send: func(ctx context.Context, messages []events.Message) error {
		err := s.bus.Publish(ctx, messages...)
		if err == nil && progress != nil {
			progress(s.seeded.Events)
		}
		return err
	}}
	last, _ := s.log.Last()
	for r, err := range s.log.Read(ctx, eventlog.ReadOptions{To: last}) {
		if err != nil {
			return err
		}
		delete(s.open, r.Message.CausationID)
		if forWorkers[r.Message.Type] {
			s.open[r.Message.ID] = true
		}
		s.seeded.Events = r.Seq
		if err := batch.add(ctx, r.Message, len(r.Message.Data)); err != nil {
			return err
		}
	}
	return batch.flush(ctx)
}

// readBack reads the run from its beginning, compares it with the log, and
// fills in the positions.
func (s *seeding) readBack(ctx context.Context) (err error) {
	reader, err := s.bus.Read(ctx, events.ReadConfig{Run: s.run, From: events.Start})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for r, err := range s.log.Read(ctx, eventlog.ReadOptions{To: s.seeded.Events}) {
		if err != nil {
			return err
		}
		position, err := s.find(ctx, reader, &r)
		if err != nil {
			return err
		}
		if _, wanted := s.seeded.Positions[r.Seq]; wanted {
			s.seeded.Positions[r.Seq] = position
		}
		s.seeded.End = position
	}
	return nil
}

// find reads up to the event of a record. It leaves out messages that are no
// events: another publisher may use the bus.
func (s *seeding) find(ctx context.Context, reader events.Reader, r *eventlog.Record) (events.Position, error) {
	for {
		m, position, err := reader.Next(ctx)
		if err != nil {
			return "", fmt.Errorf("read back event %d: %w", r.Seq, err)
		}
		if m.ID == r.Message.ID && m.Encoding == r.Message.Encoding && bytes.Equal(m.Data, r.Message.Data) {
			return position, nil
		}
		if _, err := m.Admit(); err == nil {
			return "", &ForeignEventError{s.run, r.Seq, m.ID}
		}
	}
}

const (
	settleBatch = 64
	// settleOpen bounds the unanswered deliveries of a worker set. They belong to
	// groups in flight.
	settleOpen = 1 << 16
	// settleWait is the time until the bus repeats an unanswered delivery.
	settleWait = time.Minute
)

// settle fetches every event of a worker set. It acknowledges the events that have
// an effect in the log, and returns the others to the bus.
func (s *seeding) settle(ctx context.Context, worker events.Stage) (err error) {
	consumer, err := s.bus.Consume(ctx, events.ConsumeConfig{
		Run: s.run, Name: worker.Name, Types: worker.Consumes, AckWait: settleWait, MaxInFlight: settleOpen,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, consumer.Close()) }()
	lag, err := s.bus.Lag(ctx, s.run, worker.Name)
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
			done := !s.open[id]
			if done { // an event that the log does not have is open too
				if done, err = s.log.Has(id); err != nil {
					return err
				}
			}
			if !done {
				open[id] = d
				continue
			}
			if err := d.Ack(ctx); err != nil {
				return err
			}
		}
		if len(open) > settleOpen-settleBatch {
			return fmt.Errorf("more than %d events are open; let the run finish its groups first", settleOpen-settleBatch)
		}
	}
	for _, d := range open {
		if err := d.Retry(ctx, 0); err != nil {
			return err
		}
	}
	s.seeded.Open += uint64(len(open))
	return nil
}
