package stage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"codea1/events"
)

// Stage is one replica of a worker. Run it once.
type Stage struct {
	config    Config
	logger    *slog.Logger
	publisher Publisher
	rules     rules
	metrics   *metrics
	signals   *signals
	contact   contact
	failures  failureCounts
}

// New checks the configuration and registers the metrics.
func New(config Config) (*Stage, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(config.Registerer, config.Name)
	if err != nil {
		return nil, fmt.Errorf("stage %s: metrics: %w", config.Name, err)
	}
	g, err := newSignals(config.Registerer)
	if err != nil {
		return nil, fmt.Errorf("stage %s: metrics: %w", config.Name, err)
	}
	s := &Stage{
		config: config,
		logger: config.Logger.With("stage", config.source()),
		rules: rules{
			keep:  config.KeepGroups,
			stage: config.Name, source: config.source(), maxTries: config.MaxTries, backoff: config.Backoff,
			hold: config.HoldDeadLetters > 0,
		},
		metrics: m,
		signals: g,
	}
	s.publisher = Publisher{
		Bus: config.Bus, Backoff: config.Backoff, Logger: s.logger,
		asked: func(ctx context.Context, err error) { s.asked(ctx, opPublish, err) },
	}
	return s, nil
}

// Run handles events until ctx ends. Then it fetches no more, waits up to
// DrainTimeout for work in flight, and returns nil. After DrainTimeout it ends
// the handlers' context, waits for them and returns an error. Unacknowledged
// events are delivered again to the worker set.
//
// Run continues through outages of the bus. It returns early, with an error,
// only if it cannot begin to consume or the bus was closed.
func (s *Stage) Run(ctx context.Context) error {
	consumer, err := s.consume(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("stage %s: %w", s.config.Name, err)
	}
	// Work may continue after ctx ends, up to DrainTimeout.
	work, stopWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopWork(nil)

	s.signals.add(s)
	defer s.signals.remove(s)
	s.contact.start(time.Now())
	defer s.contact.stop()
	beating, stopBeating := context.WithCancel(ctx)
	defer stopBeating()
	var beats sync.WaitGroup
	beats.Go(func() { s.watch(beating) })
	if s.config.HeartbeatEvery > 0 {
		beats.Go(func() { s.heartbeat(beating) })
	}
	if s.config.HoldDeadLetters > 0 {
		beats.Go(func() { s.releaseHeld(beating, s.config.Bus.(events.DeadLetters)) })
	}
	var batches sync.WaitGroup
	consumer, err = s.fetch(ctx, consumer, func(deliveries []events.Delivery, done func()) {
		batches.Go(func() {
			defer done()
			s.handle(work, deliveries)
		})
	})

	timer := time.AfterFunc(s.config.DrainTimeout, func() { stopWork(errDrain) })
	batches.Wait()
	if !timer.Stop() && err == nil {
		err = errDrain
	}
	stopBeating() // the loop may have ended before ctx
	beats.Wait()
	if consumer != nil {
		err = errors.Join(err, consumer.Close())
	}
	if err != nil {
		return fmt.Errorf("stage %s: %w", s.config.Name, err)
	}
	return nil
}

var errDrain = errors.New("work in flight did not finish within the drain timeout")

func (s *Stage) consume(ctx context.Context) (events.Consumer, error) {
	return s.config.Bus.Consume(ctx, events.ConsumeConfig{
		Run: s.config.Run, Name: s.config.Name, Types: s.config.Types,
		AckWait: s.config.AckWait, MaxInFlight: s.config.MaxInFlight,
	})
}

// fetch starts a batch whenever a slot is free, until ctx ends (nil) or the bus
// is closed (ErrClosed). It returns the current consumer, which is a new one
// after an error, or nil.
func (s *Stage) fetch(ctx context.Context, consumer events.Consumer, start func([]events.Delivery, func())) (events.Consumer, error) {
	slots := make(chan struct{}, s.config.Concurrency)
	for failures := 0; ; {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return consumer, nil
		}
		var deliveries []events.Delivery
		var err error
		if consumer == nil {
			consumer, err = s.consume(ctx)
		}
		if err == nil {
			deliveries, err = consumer.Fetch(ctx, s.config.Batch, s.config.Linger)
		}
		s.asked(ctx, opFetch, err)
		switch {
		case err == nil:
			failures = 0
			start(deliveries, func() { <-slots })
			continue
		case ctx.Err() != nil:
			return consumer, nil
		case errors.Is(err, events.ErrClosed):
			return consumer, err
		}
		<-slots
		failures++
		if failures == 1 {
			s.logger.Warn("cannot fetch events, trying again", "error", err)
		}
		// Open a new consumer next: this one may be unusable.
		if consumer != nil {
			consumer.Close()
			consumer = nil
		}
		if sleep(ctx, s.config.Backoff.delay(s.config.Name, failures)) != nil {
			return nil, nil
		}
	}
}

// failureCounts counts the failures of events in this replica. It forgets an
// event that is answered, and all events if there are too many: then some are
// retried more often than necessary.
type failureCounts struct {
	mu    sync.Mutex
	count map[string]int // by event ID
}

const maxFailureCounts = 1 << 16

func (f *failureCounts) of(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[id]
}

func (f *failureCounts) add(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil || len(f.count) >= maxFailureCounts {
		f.count = make(map[string]int)
	}
	f.count[id]++
}

func (f *failureCounts) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.count, id)
}
