package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/events"
)

// Bus is what a Recorder needs of events.Bus.
type Bus interface {
	Publish(ctx context.Context, messages ...events.Message) error
	Read(ctx context.Context, config events.ReadConfig) (events.Reader, error)
}

// RecorderConfig configures a Recorder. Zero values stand for the defaults.
type RecorderConfig struct {
	Run    string // the run whose events are recorded; required
	Source string // the recorder's name in events it publishes; "recorder"
	// A batch is committed when it holds MaxBatch events (256) or at least
	// MaxBatchBytes of payload (4 MiB), or Linger (5 ms) after its first event.
	MaxBatch      int
	MaxBatchBytes int
	Linger        time.Duration
	// KeepTokens is for how many of the last trained steps the log keeps token
	// ids and log-probs: those of older steps are compacted away, as by
	// Log.Compact, while recording goes on. 0 keeps all.
	KeepTokens int
	// OnAppend hears the events that have become part of the log, in order; the
	// log may be a batch or two further by then. An error from it ends the
	// recorder.
	OnAppend func(ctx context.Context, appended []events.Message) error
	Now      func() time.Time // time.Now
	Logger   *slog.Logger     // discards
}

func (c *RecorderConfig) setDefaults() error {
	if err := events.ValidName(c.Run); err != nil {
		return fmt.Errorf("recorder: run: %w", err)
	}
	if c.MaxBatch < 0 || c.MaxBatchBytes < 0 || c.Linger < 0 {
		return fmt.Errorf("recorder: negative batch limit: %d events, %d bytes, %v", c.MaxBatch, c.MaxBatchBytes, c.Linger)
	}
	if c.KeepTokens < 0 {
		return fmt.Errorf("recorder: keep the tokens of %d steps: want 1 or more, or 0 for all", c.KeepTokens)
	}
	if c.Source == "" {
		c.Source = events.StageRecorder
	}
	if c.MaxBatch == 0 {
		c.MaxBatch = 256
	}
	if c.MaxBatchBytes == 0 {
		c.MaxBatchBytes = 4 << 20
	}
	if c.Linger == 0 {
		c.Linger = 5 * time.Millisecond
	}
	if c.OnAppend == nil {
		c.OnAppend = func(context.Context, []events.Message) error { return nil }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Recorder reads every event of a run from the bus, in order, into the log.
type Recorder struct {
	bus    Bus
	log    *Log
	config RecorderConfig
	wake   chan struct{} // holds one note that there may be tokens to compact
}

// NewRecorder returns a recorder of a run.
func NewRecorder(bus Bus, log *Log, config RecorderConfig) (*Recorder, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	return &Recorder{bus, log, config, make(chan struct{}, 1)}, nil
}

// Run records from where the log ends until ctx ends, and returns nil then.
// What has been read by then is still committed. Any other end is an error;
// running again goes on where the log ends.
func (r *Recorder) Run(ctx context.Context) error {
	reader, err := r.bus.Read(ctx, events.ReadConfig{Run: r.config.Run, From: r.log.Position()})
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
	// What was read is kept even while stopping.
	keeping, cancel := outlive(ctx, stopGrace)
	defer cancel()
	if r.config.KeepTokens > 0 {
		r.wakeRetention()
		group.Go(func() error { return r.retain(ctx, r.wake) })
	}
	entries := make(chan Entry) // unbuffered: three batches bound what is in memory
	group.Go(func() error {
		defer close(entries)
		for {
			m, position, err := reader.Next(ctx)
			if err != nil {
				return fmt.Errorf("recorder: read run %s: %w", r.config.Run, err)
			}
			select {
			case entries <- Entry{Message: m, Position: position}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	// While a batch is on its way to the disk the next one is made ready.
	pendings, gone := make(chan *Pending), make(chan struct{})
	group.Go(func() error {
		defer close(pendings)
		for {
			batch := r.collect(entries)
			if len(batch) == 0 {
				return nil
			}
			pending, err := r.log.Begin(keeping, batch)
			if err != nil {
				return err
			}
			select {
			case pendings <- pending:
			case <-gone:
				_, err := pending.Wait()
				return err
			}
		}
	})
	group.Go(func() error {
		defer close(gone)
		for pending := range pendings {
			if err := r.record(keeping, pending); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// stopGrace is how long a recorder goes on with what it has read.
const stopGrace = 10 * time.Second

// outlive returns a context that ends grace after ctx does.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(grace):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() { stop(); cancel() }
}

// collect returns the next batch, empty once the channel is closed.
func (r *Recorder) collect(entries <-chan Entry) []Entry {
	first, ok := <-entries
	if !ok {
		return nil
	}
	batch, size := []Entry{first}, len(first.Message.Data)
	linger := time.NewTimer(r.config.Linger)
	defer linger.Stop()
	for len(batch) < r.config.MaxBatch && size < r.config.MaxBatchBytes {
		select {
		case e, ok := <-entries:
			if !ok {
				return batch
			}
			batch = append(batch, e)
			size += len(e.Message.Data)
		case <-linger.C:
			return batch
		}
	}
	return batch
}

// record goes on with a batch once it is on disk.
func (r *Recorder) record(ctx context.Context, pending *Pending) error {
	appended, err := pending.Wait()
	if err != nil {
		return err
	}
	for _, rejection := range appended.Rejected {
		r.config.Logger.Warn("event left out of the log: nobody can read it",
			"event", rejection.Message.ID, "type", rejection.Message.Type, "group", rejection.Message.Group, "err", rejection.Err)
	}
	dropped := make(map[string]bool)
	for _, c := range appended.Conflicts {
		r.config.Logger.Warn("event left out of the log: another payload stands",
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

// wakeRetention never waits: one note is enough.
func (r *Recorder) wakeRetention() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// dropPending publishes what an earlier recorder may have died over: it commits
// a refusal before it publishes what follows from it.
func (r *Recorder) dropPending(ctx context.Context) error {
	standing, err := r.log.partedLineages(ctx)
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

// drop publishes that the group of a standing event leaves the pipeline: a
// worker went on with another payload under that event's ID, and the IDs of
// what follows are taken. The drop follows from the standing event alone, so
// however many descendants are refused it is one event.
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
		return nil // not a group on its way: there is nothing to drop
	}
	dropped := events.Caused(cause, r.config.Source, r.config.Now(), &events.GroupDropped{
		Purpose: plan.Purpose, Step: plan.Step, Slot: plan.Slot, Groups: plan.Groups,
		Stage: r.config.Source, Reason: events.DropLineage,
		Detail: fmt.Sprintf("%s %s was published with two payloads; the first stands, and events that follow from the other are left out", cause.Type, standing),
	})
	// The payload may be compacted by now; events name what was appended.
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
