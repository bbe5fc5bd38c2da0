package stage

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts for Prometheus and, because a heartbeat needs them too, for
// the stage itself.
type metrics struct {
	handled  prometheus.Counter
	failed   prometheus.Counter
	snoozed  prometheus.Counter
	dropped  *prometheus.CounterVec // by reason
	inFlight prometheus.Gauge
	duration prometheus.Observer

	handledCount, failedCount, inFlightCount atomic.Int64
	busy                                     busyMeter
}

// newMetrics makes the collectors, or takes those an earlier stage of the same
// process has registered.
func newMetrics(registerer prometheus.Registerer, stage string) (*metrics, error) {
	var errs []error
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register(registerer, &errs, prometheus.NewCounterVec(
			prometheus.CounterOpts{Namespace: "codea1", Subsystem: "stage", Name: name, Help: help}, append([]string{"stage"}, labels...)))
	}
	handled := counter("handled_total", "Events handled and acknowledged, dropped ones included.")
	failed := counter("failed_total", "Attempts at an event that failed.")
	snoozed := counter("snoozed_total", "Times an event was put off because it could not be handled yet.")
	dropped := counter("dropped_total", "Groups that left the pipeline at this stage.", "reason")
	inFlight := register(registerer, &errs, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "codea1", Subsystem: "stage", Name: "in_flight_events", Help: "Events being handled now.",
	}, []string{"stage"}))
	duration := register(registerer, &errs, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "codea1", Subsystem: "stage", Name: "batch_duration_seconds",
		Help:    "Time from the arrival of a batch to its acknowledgement. Its sum is the time slots were busy.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 10), // 1 ms to 262 s
	}, []string{"stage"}))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	labels := prometheus.Labels{"stage": stage}
	return &metrics{
		handled: handled.With(labels), failed: failed.With(labels), snoozed: snoozed.With(labels),
		dropped: dropped.MustCurryWith(labels), inFlight: inFlight.With(labels), duration: duration.With(labels),
	}, nil
}

func register[C prometheus.Collector](registerer prometheus.Registerer, errs *[]error, c C) C {
	if registerer == nil {
		return c
	}
	err := registerer.Register(c)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		if existing, ok := registered.ExistingCollector.(C); ok {
			return existing
		}
	}
	if err != nil {
		*errs = append(*errs, err)
	}
	return c
}

func (m *metrics) begin(batch int, now time.Time) {
	m.inFlight.Add(float64(batch))
	m.inFlightCount.Add(int64(batch))
	m.busy.change(+1, now)
}

func (m *metrics) end(batch int, began, now time.Time) {
	m.inFlight.Sub(float64(batch))
	m.inFlightCount.Add(-int64(batch))
	m.busy.change(-1, now)
	m.duration.Observe(now.Sub(began).Seconds())
}

func (m *metrics) count(d decision) {
	if d.failure != nil {
		m.failed.Inc()
		m.failedCount.Add(1)
	}
	if d.reason != "" {
		m.dropped.WithLabelValues(string(d.reason)).Inc()
	}
	switch {
	case d.answer != answerRetry:
		m.handled.Inc()
		m.handledCount.Add(1)
	case d.failure == nil:
		m.snoozed.Inc()
	}
}

// busyMeter integrates the number of busy slots over time.
type busyMeter struct {
	mu     sync.Mutex
	active int
	since  time.Time // of the last change
	total  time.Duration
}

func (b *busyMeter) change(by int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.active += by
}

// read returns slot-time spent busy up to now.
func (b *busyMeter) read(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	return b.total
}

func (b *busyMeter) advance(now time.Time) {
	if d := now.Sub(b.since); d > 0 && b.active > 0 {
		b.total += time.Duration(b.active) * d
	}
	b.since = now
}
