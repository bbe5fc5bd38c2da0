package stage_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

// A worker set holds at most MaxInFlight events, and a replica at most those
// that it handles at once. All other events stay on the bus and count as lag.
func TestASlowStageHoldsLittle(t *testing.T) {
	bus := natstest.Bus(t)
	const n, atOnce, inFlight = 400, 2 * 3, 8 // two slots of three events; two replicas want 12
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	var held, most atomic.Int64
	c := config(bus, func(ctx context.Context, batch []*events.Event) []stage.Result {
		most.Store(max(most.Load(), held.Add(int64(len(batch)))))
		<-gate
		held.Add(-int64(len(batch)))
		return stage.Each(answer)(ctx, batch)
	})
	c.Concurrency, c.Batch, c.MaxInFlight, c.LagEvery, c.AckWait = 2, 3, inFlight, 10*time.Millisecond, 20*time.Second
	registries := []*prometheus.Registry{prometheus.NewRegistry(), prometheus.NewRegistry()}
	post(t, bus, n)
	for i, instance := range []string{"0", "1"} {
		c.Instance, c.Registerer = instance, registries[i]
		start(t, c)
	}
	t.Cleanup(open)
	for _, registry := range registries {
		eventually(t, "the lag says what waits", func() bool {
			m := gather(t, registry)
			return m["codea1_stage_unanswered_events worker"] == inFlight && m["codea1_stage_lag_events worker"] == n-inFlight
		})
		if m := gather(t, registry); m["codea1_stage_in_flight_events worker"] > atOnce || m["codea1_stage_slots worker"] != 2 {
			t.Errorf("an instance holds %v events in %v slots", m["codea1_stage_in_flight_events worker"], m["codea1_stage_slots worker"])
		}
		// One of the two may hold only the events of one slot.
		eventually(t, "it is busy", func() bool { return gather(t, registry)["codea1_stage_busy_ratio worker"] > 0.25 })
	}
	open()
	collect(t, bus, n, events.TypeCodeSampled)
	settled(t, bus)
	if most.Load() > inFlight {
		t.Errorf("%d events were held at a time, limit %d", most.Load(), inFlight)
	}
	for _, registry := range registries {
		eventually(t, "no lag", func() bool {
			m := gather(t, registry)
			return m["codea1_stage_lag_events worker"] == 0 && m["codea1_stage_unanswered_events worker"] == 0
		})
	}
}
