package stage

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"codea1/events"
)

// Meter publishes the heartbeats of a stage that is no worker, and has the metrics
// that every worker has. The methods of a nil Meter do nothing.
type Meter struct{ stage *Stage }

// NewMeter registers the metrics of the stage config.Name. It uses Bus, Run, Name,
// Instance, HeartbeatEvery, Logger, Registerer and Now.
func NewMeter(config Config) (*Meter, error) {
	config = config.withDefaults()
	config.Concurrency, config.LagEvery = 1, cmp.Or(config.HeartbeatEvery, config.LagEvery)
	m, err := newMetrics(config.Registerer, config.Name)
	if err != nil {
		return nil, fmt.Errorf("stage %s: metrics: %w", config.Name, err)
	}
	g, err := newSignals(config.Registerer)
	if err != nil {
		return nil, fmt.Errorf("stage %s: metrics: %w", config.Name, err)
	}
	return &Meter{&Stage{config: config, logger: config.Logger.With("stage", config.source()), metrics: m, signals: g}}, nil
}

// Run publishes heartbeats until ctx ends, and returns nil.
func (m *Meter) Run(ctx context.Context) error {
	s := m.stage
	s.signals.add(s)
	defer s.signals.remove(s)
	var beats sync.WaitGroup
	defer beats.Wait()
	beats.Go(func() { s.measure(ctx, func() {}) })
	if s.config.HeartbeatEvery > 0 {
		beats.Go(func() { s.heartbeat(ctx) })
	}
	return nil
}

// Begin counts events or groups that are being handled from now on. The caller calls
// the returned function once they are handled, with the error of a failure.
func (m *Meter) Begin(n int) (end func(error)) {
	if m == nil {
		return func(error) {}
	}
	metrics, began := m.stage.metrics, m.stage.config.Now()
	metrics.begin(n, 0, began)
	return func(err error) {
		metrics.end(n, began, m.stage.config.Now(), "")
		if err != nil {
			m.Failed(1)
			return
		}
		metrics.handled.WithLabelValues(outcomePassed).Add(float64(n))
		metrics.handledCount.Add(int64(n))
	}
}

// Failed counts failures.
func (m *Meter) Failed(n int) {
	if m != nil {
		m.stage.metrics.failed.Add(float64(n))
		m.stage.metrics.failedCount.Add(int64(n))
	}
}

// Behind records the lag from a reader that knows it.
func (m *Meter) Behind(reader events.Reader) {
	if lagging, ok := reader.(events.Lagging); ok && m != nil {
		m.stage.contact.noteLag(events.Lag{Pending: lagging.Behind(), InFlight: m.stage.metrics.inFlightCount.Load()}, time.Now())
	}
}
