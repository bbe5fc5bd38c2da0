package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/events/services"
	"codea1/events/stage"
)

// Bus is the part of events.Bus that a Recorder needs.
type Bus interface {
	Publish(ctx context.Context, messages ...events.Message) error
	Read(ctx context.Context, config events.ReadConfig) (events.Reader, error)
}

// RecorderConfig configures a Recorder. Zero values are the defaults in
// parentheses.
type RecorderConfig struct {
	Run    string // name of the run; required
	Source string // source of the recorder's own events (the stage name)
	// KeepTokens is the number of trained steps that keep their token ids and
	// log-probs in the log. Older steps are compacted while the recorder runs. 0 keeps
	// all.
	KeepTokens int
	// OnAppend is called with the events that have been appended, in order. The log
	// may already have later batches. An error ends the recorder.
	OnAppend func(ctx context.Context, appended []events.Message) error
	Meter    *stage.Meter     // measures the recorder; nil disables it
	Now      func() time.Time // (time.Now)
	Logger   *slog.Logger     // nil discards
}

// A batch is committed when it holds maxBatch events or at least maxBatchBytes of
// payload, or linger after its first event.
const (
	maxBatch      = 256
	maxBatchBytes = 4 << 20
	linger        = 5 * time.Millisecond
)

func (c *RecorderConfig) setDefaults() error {
	if err := events.ValidName(c.Run); err != nil {
		return fmt.Errorf("recorder: run: %w", err)
	}
	if c.KeepTokens < 0 {
		return fmt.Errorf("recorder: keep the tokens of %d steps: want 1 or more, or 0 for all", c.KeepTokens)
	}
	c.Source = cmp.Or(c.Source, events.StageRecorder)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.OnAppend == nil {
		c.OnAppend = func(context.Context, []events.Message) error { return nil }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// Recorder appends every event of a run on the bus to the log, in order.
type Recorder struct {
	bus    Bus
	log    *Log
	config RecorderConfig
	wake   chan struct{} // holds a value if there may be tokens to compact

	maxBatch int // the constant, except in tests
}

// NewRecorder returns a recorder of a run.
func NewRecorder(bus Bus, log *Log, config RecorderConfig) (*Recorder, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	return &Recorder{bus, log, config, make(chan struct{}, 1), maxBatch}, nil
}

// Run records from the log's position until ctx ends, and then returns nil.
// Messages that have been read are still committed. Any other end is an error;
// another call continues at the log's position.
func (r *Recorder) Run(ctx context.Context) error {
	reader, err := r.bus.Read(ctx, events.ReadConfig{Run: r.config.Run, From: r.log.Position(), Malformed: true})
	if err != nil {
		return fmt.Errorf("recorder: read run %s: %w", r.config.Run, err)
	}
	err = r.run(ctx, reader)
	if closeErr := reader.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("recorder: close reader of run %s: %w", r.config.Run, closeErr)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

func (r *Recorder) run(ctx context.Context, reader events.Reader) error {
	if err := r.dropPending(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	// Messages that were read are committed even while the recorder stops.
	keeping, cancel := services.Outlive(ctx, stopGrace)
	defer cancel()
	if r.config.KeepTokens > 0 {
		r.wakeRetention()
		group.Go(func() error { return r.retain(ctx, r.wake) })
	}
	entries := make(chan Incoming) // unbuffered: memory holds at most three batches
	group.Go(func() error {
		defer close(entries)
		for {
			next, err := Next(ctx, reader)
			if err != nil {
				return fmt.Errorf("recorder: read run %s: %w", r.config.Run, err)
			}
			r.config.Meter.Behind(reader)
			select {
			case entries <- next:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	// The next batch is prepared while one is committed.
	pendings, gone := make(chan begun), make(chan struct{})
	group.Go(func() error {
		defer close(pendings)
		for {
			batch := r.collect(entries)
			if len(batch) == 0 {
				return nil
			}
			handled := r.config.Meter.Begin(len(batch))
			pending, err := r.log.Begin(keeping, batch)
			if err != nil {
				handled(err)
				return err
			}
			select {
			case pendings <- begun{pending, handled}:
			case <-gone:
				_, err := pending.Wait()
				handled(err)
				return err
			}
		}
	})
	group.Go(func() error {
		defer close(gone)
		for pending := range pendings {
			err := r.record(keeping, pending.Pending)
			pending.handled(err)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// begun is a batch that is being committed. handled takes the result.
type begun struct {
	*Pending
	handled func(error)
}

// Next returns the next message of a reader with ReadConfig.Malformed.
func Next(ctx context.Context, reader events.Reader) (Incoming, error) {
	m, position, err := reader.Next(ctx)
	var malformed *events.MalformedError
	if errors.As(err, &malformed) {
		err = nil
	}
	return Incoming{Message: m, Position: position, Malformed: malformed}, err
}

// loggedQuarantine is the number of quarantined messages that are logged one by
// one. Of later ones, one in so many is logged: the publisher may make millions.
const loggedQuarantine = 100

// stopGrace is the time that a stopping recorder has to commit its messages.
const stopGrace = 10 * time.Second

// collect returns the next batch, empty once the channel is closed.
func (r *Recorder) collect(entries <-chan Incoming) []Incoming {
	first, ok := <-entries
	if !ok {
		return nil
	}
	batch, size := []Incoming{first}, first.size()
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for len(batch) < r.maxBatch && size < maxBatchBytes {
		select {
		case e, ok := <-entries:
			if !ok {
				return batch
			}
			batch = append(batch, e)
			size += e.size()
		case <-timer.C:
			return batch
		}
	}
	return batch
}

// record handles a batch after it is on disk.
func (r *Recorder) record(ctx context.Context, pending *Pending) error {
	appended, err := pending.Wait()
	if err != nil {
		return err
	}
	r.config.Meter.Failed(len(appended.Quarantined) + len(appended.Conflicts))
	for i := range appended.Quarantined {
		q := &appended.Quarantined[i]
		if q.Number > loggedQuarantine && q.Number%loggedQuarantine != 0 {
			continue
		}
		r.config.Logger.Warn("message quarantined: it is no event of the run", "number", q.Number, "position", q.Position,
			"type", q.Type, "group", q.Group, "source", q.Source, "place", q.Place, "reason", q.Reason)
	}
	dropped := make(map[string]bool)
	for _, c := range appended.Conflicts {
		r.config.Logger.Warn("message left out of the log: another payload stands",
			"event", c.Message.ID, "type", c.Message.Type, "group", c.Message.Group, "source", c.Message.Source, "standing", c.Standing)
		if !c.Descends() || dropped[c.Standing] {
			continue
		}
		dropped[c.Standing] = true
		if err := r.drop(ctx, c.Standing); err != nil {
			return err
		}
	}
	if len(appended.Messages) == 0 {
		return nil
	}
	if slices.ContainsFunc(appended.Messages, policyUpdated) {
		r.wakeRetention()
	}
	if err := r.config.OnAppend(ctx, appended.Messages); err != nil {
		return fmt.Errorf("recorder: after event %d: %w", appended.Last, err)
	}
	return nil
}

// wakeRetention never waits: one value in the channel is enough.
func (r *Recorder) wakeRetention() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// dropPending publishes the drops that an earlier recorder has not published: it
// commits a refusal before it publishes the drop, and may be killed in between.
func (r *Recorder) dropPending(ctx context.Context) error {
	standing, err := r.log.undropped(ctx)
	if err != nil {
		return err
	}
	for _, id := range standing {
		if err := r.drop(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// drop publishes the drop of a standing event's group. A worker has used another
// payload under that event's ID, and the IDs of the events that follow are taken.
// The drop's ID derives from the standing event, so there is one drop however many
// descendants are refused.
func (r *Recorder) drop(ctx context.Context, standing string) error {
	record, err := r.log.Get(ctx, standing)
	if err != nil {
		return err
	}
	cause, err := record.Decode()
	if err != nil {
		return err
	}
	plan, ok := events.PlanOf(cause.Payload)
	if !ok {
		return nil // the event belongs to no group
	}
	dropped := events.Caused(cause, r.config.Source, r.config.Now(), &events.GroupDropped{
		Purpose: plan.Purpose, Step: plan.Step, Slot: plan.Slot, Groups: plan.Groups,
		Stage: r.config.Source, Reason: events.DropLineage,
		Detail: fmt.Sprintf("%s %s was published with two payloads; the first stands, and events that follow from the other are left out", cause.Type, standing),
	})
	// The payload may be compacted; the cause is named by its original hash.
	dropped.CausationHash = record.PayloadHash.String()
	m, err := events.Encode(dropped)
	if err != nil {
		return err
	}
	if err := r.bus.Publish(ctx, m); err != nil {
		return fmt.Errorf("recorder: drop group %s: %w", cause.Group, err)
	}
	return nil
}
