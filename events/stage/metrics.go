package stage

import (
	"context"
	"errors"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of a stage, for Prometheus and for heartbeats.
// signals.go has the gauges.
type metrics struct {
	handled     *prometheus.CounterVec // by outcome
	published   *prometheus.CounterVec // by type
	dropped     *prometheus.CounterVec // by reason
	busErrors   *prometheus.CounterVec // by operation
	failed      prometheus.Counter
	retried     prometheus.Counter
	snoozed     prometheus.Counter
	redelivered prometheus.Counter
	replayed    prometheus.Counter
	inFlight    prometheus.Gauge
	batch       prometheus.Observer
	handler     prometheus.Observer

	handledCount, failedCount, inFlightCount atomic.Int64
	busy                                     busyMeter
}

// Values of the label outcome.
const (
	outcomePassed  = "passed"  // its outputs were published
	outcomeDropped = "dropped" // its group was dropped, as the handler wanted
	outcomeDead    = "dead"    // it became a dead letter
)

// operation is a value of the label operation: the kind of a request to the
// bus.
type operation string

const (
	opFetch   operation = "fetch"
	opPublish operation = "publish"
	opAnswer  operation = "answer"
	opLag     operation = "lag"
)

const namespace, subsystem = "codea1", "stage"

// newMetrics makes the collectors, or returns those that another stage of the
// process has registered.
func newMetrics(registerer prometheus.Registerer, stage string) (*metrics, error) {
	var errs []error
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register(registerer, &errs, prometheus.NewCounterVec(
			prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, append([]string{"stage"}, labels...)))
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return register(registerer, &errs, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10), // 1 ms to 262 s
		}, []string{"stage"}))
	}
	handled := counter("handled_total", "Events that were answered, by outcome: passed (outputs published), dropped (group dropped by the handler) or dead (dead letter).", "outcome")
	published := counter("published_total", "Output events published.", "type")
	dropped := counter("dropped_total", "Groups that this stage dropped.", "reason")
	busErrors := counter("bus_errors_total", "Requests to the bus that failed, by operation: fetch, publish, answer or lag. They do not count as failures of events.", "operation")
	failed := counter("failed_total", "Failures of events in the handler.")
	retried := counter("retried_total", "Events given back after a failure, to be retried.")
	snoozed := counter("snoozed_total", "Events given back because they could not be handled yet.")
	redelivered := counter("redelivered_total", "Deliveries of events that were delivered before, to any replica.")
	replayed := counter("replayed_total", "Events whose output was in the outbox and was not made again.")
	inFlight := register(registerer, &errs, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "in_flight_events", Help: "Events that this process is handling now.",
	}, []string{"stage"}))
	batch := histogram("batch_duration_seconds", "Time from the arrival of a batch to its acknowledgement.")
	handler := histogram("handler_duration_seconds", "Time of one call of the handler on a batch. The rest of batch_duration_seconds is the loop, the codec and the bus.")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	of := prometheus.Labels{"stage": stage}
	return &metrics{
		handled: handled.MustCurryWith(of), published: published.MustCurryWith(of),
		dropped: dropped.MustCurryWith(of), busErrors: busErrors.MustCurryWith(of),
		failed: failed.With(of), retried: retried.With(of), snoozed: snoozed.With(of), redelivered: redelivered.With(of), replayed: replayed.With(of),
		inFlight: inFlight.With(of), batch: batch.With(of), handler: handler.With(of),
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

func (m *metrics) begin(batch, redelivered int, now time.Time) {
	m.redelivered.Add(float64(redelivered))
	m.inFlight.Add(float64(batch))
	m.inFlightCount.Add(int64(batch))
	m.busy.change(+1, now)
}

// end takes the W3C trace context of an event of the batch. Its trace becomes the
// exemplar of the batch's time.
func (m *metrics) end(batch int, began, now time.Time, traceParent string) {
	m.inFlight.Sub(float64(batch))
	m.inFlightCount.Add(-int64(batch))
	m.busy.change(-1, now)
	seconds := now.Sub(began).Seconds()
	exemplars, ok := m.batch.(prometheus.ExemplarObserver)
	if found := traceID.FindStringSubmatch(traceParent); ok && found != nil {
		exemplars.ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": found[1]})
		return
	}
	m.batch.Observe(seconds)
}

// traceID finds the trace in a trace context. A message may have any text there, and a
// label that is too long or no UTF-8 panics.
var traceID = regexp.MustCompile(`^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`)

// CountReplayed counts an event whose output was made before, for the metrics
// of the stage that called the handler with ctx. With any other context it does
// nothing.
func CountReplayed(ctx context.Context) {
	if m, ok := ctx.Value(metricsKey{}).(*metrics); ok {
		m.replayed.Inc()
	}
}

// metricsKey is the context key of a stage's *metrics.
type metricsKey struct{}

// leave counts the published messages and the dropped group of a decision.
func (m *metrics) leave(d decision) {
	for i := range d.publish {
		m.published.WithLabelValues(string(d.publish[i].Type)).Inc()
	}
	if d.reason != "" {
		m.dropped.WithLabelValues(string(d.reason)).Inc()
	}
}

func (m *metrics) count(d decision) {
	m.leave(d)
	if d.failure != nil {
		m.failed.Inc()
		m.failedCount.Add(1)
	}
	switch {
	case d.answer != answerRetry:
		m.handled.WithLabelValues(d.outcome()).Inc()
		m.handledCount.Add(1)
	case d.failure != nil:
		m.retried.Inc()
	default:
		m.snoozed.Inc()
	}
}

func (d *decision) outcome() string {
	switch {
	case d.answer == answerDeadLetter:
		return outcomeDead
	case d.reason != "":
		return outcomeDropped
	}
	return outcomePassed
}
