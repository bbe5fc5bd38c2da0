package stage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

func TestWhatBecomesOfAnEvent(t *testing.T) {
	t.Parallel()
	bus := natstest.Bus(t)
	var calls [8]atomic.Int64
	c := config(bus, stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		slot := e.Payload.(*events.ProblemPosed).Plan.Slot
		n := calls[slot].Add(1)
		switch {
		case slot == 1: // always fails
			return nil, errors.New("no luck")
		case slot == 2 && n < 3: // works at the third try
			return nil, errors.New("not this time")
		case slot == 3 && n < 10: // is snoozed more often than it may fail
			return nil, stage.Snooze(time.Millisecond)
		case slot == 4:
			return nil, stage.Drop(events.DropStale, "too old")
		case slot == 5:
			panic("nil map")
		case slot == 6: // takes longer than HandleTimeout
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return answer(ctx, e)
	}))
	c.Concurrency, c.MaxTries, c.HandleTimeout = 8, 4, 200*time.Millisecond
	registry := prometheus.NewRegistry()
	c.Registerer = registry
	stop := start(t, c)
	post(t, bus, len(calls))
	sampled := collect(t, bus, 4, events.TypeCodeSampled)
	dropped := collect(t, bus, 4, events.TypeGroupDropped)
	settled(t, bus)
	if err := stop(); err != nil {
		t.Error(err)
	}

	slot := func(i int) string { return eventstest.Posed(run, 1, i).Group }
	if d := cmp.Diff([]string{slot(0), slot(2), slot(3), slot(7)}, groups(sampled)); d != "" {
		t.Errorf("answered (-want +got):\n%s", d)
	}
	got := make(map[string]string)
	for _, e := range dropped {
		g := e.Payload.(*events.GroupDropped)
		got[e.Group] = fmt.Sprintf("%s %s %d/%d of %d: %s", g.Stage, g.Reason, g.Step, g.Slot, g.Groups, g.Detail)
		if e.CausationID != eventstest.Posed(run, 1, g.Slot).ID || e.Source != "worker-0" {
			t.Errorf("%s was dropped by %s because of %s", e.Group, e.Source, e.CausationID)
		}
	}
	want := map[string]string{
		slot(1): "worker retries 1/1 of 4096: failed 4 times, last: no luck",
		slot(4): "worker stale 1/4 of 4096: too old",
		slot(5): "worker retries 1/5 of 4096: failed 4 times, last: handler panicked: nil map",
		slot(6): "worker retries 1/6 of 4096: failed 4 times, last: handler took longer than 200ms: context deadline exceeded",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("dropped (-want +got):\n%s", d)
	}
	if n := calls[3].Load(); n != 10 {
		t.Errorf("the snoozed event was handled %d times, want 10", n)
	}

	metrics := gather(t, registry)
	for name, want := range map[string]float64{
		"codea1_stage_handled_total passed worker":          4,
		"codea1_stage_handled_total dropped worker":         1,
		"codea1_stage_handled_total dead worker":            3,
		"codea1_stage_retried_total worker":                 2 + 3*3,
		"codea1_stage_redelivered_total worker":             9 + 2 + 3*3,
		"codea1_stage_published_total worker code.sampled":  4,
		"codea1_stage_published_total worker group.dropped": 4,
		"codea1_stage_failed_total worker":                  2 + 3*4,
		"codea1_stage_snoozed_total worker":                 9,
		"codea1_stage_dropped_total retries worker":         3,
		"codea1_stage_dropped_total stale worker":           1,
		"codea1_stage_in_flight_events worker":              0,
	} {
		if metrics[name] != want {
			t.Errorf("%s is %v, want %v", name, metrics[name], want)
		}
	}
}

// gather returns counters and gauges by name and label values.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

// One event that makes its whole batch fail does not fail the others.
func TestABatchThatFailsAsAWhole(t *testing.T) {
	for name, fail := range map[string]func() []stage.Result{
		"Panic":       func() []stage.Result { panic("bad weather") },
		"TooFew":      func() []stage.Result { return nil },
		"TooManyOfIt": func() []stage.Result { return make([]stage.Result, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			bus := natstest.Bus(t)
			const n = 6
			post(t, bus, n)
			c := config(bus, func(ctx context.Context, batch []*events.Event) []stage.Result {
				for _, e := range batch {
					if e.Payload.(*events.ProblemPosed).Plan.Slot == 3 {
						return fail()
					}
				}
				return stage.Each(answer)(ctx, batch)
			})
			c.Batch, c.MaxTries = n, 2
			start(t, c)
			if got := collect(t, bus, n-1, events.TypeCodeSampled); len(got) != n-1 {
				t.Errorf("%d events were answered", len(got))
			}
			dropped := collect(t, bus, 1, events.TypeGroupDropped)[0]
			if want := eventstest.Posed(run, 1, 3).Group; dropped.Group != want {
				t.Errorf("%s was dropped, want %s", dropped.Group, want)
			}
			settled(t, bus)
		})
	}
}

// TestNoEvent publishes messages that are no events, with the name of an event
// that follows. They become dead letters and end no group.
func TestNoEvent(t *testing.T) {
	bus := natstest.Bus(t)
	broken := eventstest.Encode(eventstest.Posed(run, 3, 5))
	broken.Encoding, broken.Data = events.EncodingNone, []byte("no msgpack")
	foreign := eventstest.Encode(eventstest.Posed(run, 3, 6))
	foreign.ID = strings.Repeat("ab", 16)
	newer := eventstest.Encode(eventstest.Posed(run, 3, 7))
	newer.SchemaVersion = 999
	if err := bus.Publish(bounded(t), broken, foreign, newer); err != nil {
		t.Fatal(err)
	}
	post(t, bus, 1)
	c := config(bus, stage.Each(answer))
	c.Batch = 4
	start(t, c)
	collect(t, bus, 1, events.TypeCodeSampled)
	settled(t, bus)
	letters, err := bus.DeadLetters(bounded(t), run)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for i := range letters {
		reasons = append(reasons, letters[i].Reason)
	}
	all := strings.Join(reasons, "\n")
	for _, want := range []string{"malformed payload", "does not derive", "newer than this build"} {
		if !strings.Contains(all, want) || len(letters) != 3 {
			t.Errorf("%d dead letters, want 3 and %q: %s", len(letters), want, all)
		}
	}
	marker := eventstest.Encode(events.Caused(eventstest.Posed(run, 1, 0), "marker", eventstest.At,
		&events.GroupDropped{Stage: "x", Reason: events.DropStale}))
	if err := bus.Publish(bounded(t), marker); err != nil {
		t.Fatal(err)
	}
	if first := collect(t, bus, 1, events.TypeGroupDropped)[0]; first.Source != "marker" {
		t.Errorf("group %s was dropped for a message that is no event", first.Group)
	}
}

// An output that contradicts a stored event drops the group; the other outputs
// of the batch are published.
func TestContradictionDropsTheGroup(t *testing.T) {
	bus := natstest.Bus(t)
	// Another cause has led to a code.sampled and a group.dropped before.
	other := eventstest.CodeSampled(eventstest.Posed(run, 1, 0))
	sampled := eventstest.Encode(events.Caused(other, "x", eventstest.At, other.Payload))
	gone := eventstest.Encode(events.Caused(eventstest.CodeSampled(eventstest.Posed(run, 1, 1)), "x", eventstest.At,
		&events.GroupDropped{Stage: "x", Reason: events.DropStale}))
	if err := bus.Publish(bounded(t), sampled, gone); err != nil {
		t.Fatal(err)
	}
	post(t, bus, 3)
	c := config(bus, stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		if e.Payload.(*events.ProblemPosed).Plan.Slot == 1 {
			return nil, stage.Drop(events.DropStale, "too old here as well")
		}
		return answer(ctx, e)
	}))
	c.Batch = 3
	start(t, c)
	dropped := collect(t, bus, 2, events.TypeGroupDropped)
	settled(t, bus)
	if g := dropped[0].Payload.(*events.GroupDropped); g.Stage != "x" {
		t.Errorf("the first group.dropped of the group does not stand: %+v", g)
	}
	if g := dropped[1].Payload.(*events.GroupDropped); g.Reason != events.DropLineage || g.Slot != 0 {
		t.Errorf("dropped: %+v", g)
	}
	if got := collect(t, bus, 2, events.TypeCodeSampled); got[1].Group != eventstest.Posed(run, 1, 2).Group {
		t.Errorf("answered %s", got[1].Group)
	}
}
