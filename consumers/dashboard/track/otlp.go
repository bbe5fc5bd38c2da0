package track

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"codea1/consumers/dashboard"
	"codea1/events"
)

// otlp sends a trace for each group to an OpenTelemetry collector. A span is the work
// of a stage: from the event that it took to the event that it made. Trace and span
// IDs are those of the events, so a repeated span is the same span.
//
// The variables of OpenTelemetry name the collector, for example
// OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318.
type otlp struct {
	exporter *otlptrace.Exporter
	tracer   trace.Tracer
	spans    []sdktrace.ReadOnlySpan
	made     map[string]time.Time // when the events of groups in progress were made, by ID
	order    []string             // their IDs, oldest first
}

// Bounds of a sink for traces.
const (
	maxCauses   = 1 << 16
	maxSpans    = 1024
	otlpTimeout = 20 * time.Second
)

func openOTLP(h *header) (sink, error) {
	ctx, cancel := context.WithTimeout(context.Background(), otlpTimeout)
	defer cancel()
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithTimeout(otlpTimeout))
	if err != nil {
		return nil, err
	}
	s := &otlp{exporter: exporter, made: map[string]time.Time{}}
	about := resource.NewSchemaless(attribute.String("service.name", "codea1"), attribute.String("codea1.run", h.run))
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s), sdktrace.WithIDGenerator(eventIDs{}), sdktrace.WithResource(about))
	s.tracer = provider.Tracer("codea1")
	return s, nil
}

// event adds the span that an event ends.
func (s *otlp) event(e *events.Event) error {
	began, known := s.made[e.CausationID]
	if e.CausationID == "" || !known {
		began = e.Time
	}
	s.remember(e)
	own, ok := spanContext(e.TraceParent)
	if !ok {
		return nil
	}
	ctx := context.WithValue(context.Background(), eventSpan{}, own)
	if cause, err := trace.SpanIDFromHex(e.CausationID[:min(len(e.CausationID), 16)]); err == nil {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: own.TraceID(), SpanID: cause, TraceFlags: trace.FlagsSampled, Remote: true,
		}))
	}
	attributes := []attribute.KeyValue{
		attribute.String("codea1.run", e.Run), attribute.String("codea1.group", e.Group), attribute.String("codea1.source", e.Source), attribute.String("codea1.event", e.ID),
	}
	if plan, ok := events.PlanOf(e.Payload); ok {
		attributes = append(attributes, attribute.Int("codea1.step", plan.Step), attribute.String("codea1.purpose", string(plan.Purpose)))
	}
	_, span := s.tracer.Start(ctx, string(e.Type), trace.WithTimestamp(began), trace.WithAttributes(attributes...), trace.WithSpanKind(trace.SpanKindConsumer))
	span.End(trace.WithTimestamp(e.Time))
	if len(s.spans) < maxSpans {
		return nil
	}
	return s.flush()
}

func (s *otlp) remember(e *events.Event) {
	if len(s.order) >= maxCauses {
		delete(s.made, s.order[0])
		s.order = s.order[1:]
	}
	s.made[e.ID] = e.Time
	s.order = append(s.order, e.ID)
}

func (s *otlp) write(dashboard.Row) error { return nil }

func (s *otlp) flush() error {
	if len(s.spans) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), otlpTimeout)
	defer cancel()
	err := s.exporter.ExportSpans(ctx, s.spans)
	s.spans = nil
	if err != nil {
		return fmt.Errorf("%w; OTEL_EXPORTER_OTLP_ENDPOINT is the address of the collector, such as http://127.0.0.1:4318", err)
	}
	return nil
}

func (s *otlp) close(string) error {
	err := s.flush()
	ctx, cancel := context.WithTimeout(context.Background(), otlpTimeout)
	defer cancel()
	if ended := s.exporter.Shutdown(ctx); err == nil {
		err = ended
	}
	return err
}

// OnStart implements sdktrace.SpanProcessor.
func (*otlp) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor: the span waits for the next flush, which
// returns the error of its export.
func (s *otlp) OnEnd(span sdktrace.ReadOnlySpan) { s.spans = append(s.spans, span) }

// ForceFlush implements sdktrace.SpanProcessor.
func (*otlp) ForceFlush(context.Context) error { return nil }

// Shutdown implements sdktrace.SpanProcessor.
func (*otlp) Shutdown(context.Context) error { return nil }

// spanContext parses a W3C trace context.
func spanContext(parent string) (trace.SpanContext, bool) {
	const length = 55 // 00-TRACE-SPAN-01
	if len(parent) != length {
		return trace.SpanContext{}, false
	}
	var t trace.TraceID
	var s trace.SpanID
	_, errTrace := hex.Decode(t[:], []byte(parent[3:35]))
	_, errSpan := hex.Decode(s[:], []byte(parent[36:52]))
	of := trace.NewSpanContext(trace.SpanContextConfig{TraceID: t, SpanID: s, TraceFlags: trace.FlagsSampled})
	return of, errTrace == nil && errSpan == nil && of.IsValid()
}

// eventIDs gives a span the IDs of its event.
type eventIDs struct{}

// eventSpan is the key of a context for the span context of an event.
type eventSpan struct{}

// NewIDs implements sdktrace.IDGenerator.
func (eventIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	of, _ := ctx.Value(eventSpan{}).(trace.SpanContext)
	return of.TraceID(), of.SpanID()
}

// NewSpanID implements sdktrace.IDGenerator.
func (eventIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	of, _ := ctx.Value(eventSpan{}).(trace.SpanContext)
	return of.SpanID()
}
