package stage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

// The heartbeats and the metrics of a stage that is no worker count the events that it
// handled and those in flight, its failures and its lag.
func TestMeter(t *testing.T) {
	bus, registry, ctx := natstest.Bus(t), prometheus.NewRegistry(), bounded(t)
	meter, err := stage.NewMeter(stage.Config{Bus: bus, Run: run, Name: "single", HeartbeatEvery: 20 * time.Millisecond, Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	post(t, bus, 3)
	reader, err := bus.Read(ctx, events.ReadConfig{Run: run, Types: []events.Type{events.TypeProblemPosed}})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, _, err := reader.Next(ctx); err != nil {
		t.Fatal(err)
	}
	meter.Behind(reader)
	meter.Begin(4)(nil)
	meter.Begin(1)(errors.New("no luck"))
	meter.Failed(2)
	end := meter.Begin(5)

	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- meter.Run(running) }()
	beats, err := bus.Read(ctx, events.ReadConfig{Run: run, Types: []events.Type{events.TypeStageHeartbeat}})
	if err != nil {
		t.Fatal(err)
	}
	defer beats.Close()
	for busy := 0.0; busy == 0; { // the first interval may be empty
		m, _, err := beats.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		e, err := m.Admit()
		if err != nil {
			t.Fatal(err)
		}
		got := *e.Payload.(*events.StageHeartbeat)
		busy = got.Busy
		got.Busy, got.Beat = 0, 0
		if diff := cmp.Diff(events.StageHeartbeat{Stage: "single", Handled: 4, Failed: 3, InFlight: 5, Pending: 2}, got); diff != "" || busy > 1 {
			t.Fatalf("busy %v: %s", busy, diff)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{"handled_total": 4, "failed_total": 3, "in_flight_events": 5, "lag_events": 2, "slots": 1} {
		if got["codea1_stage_"+name] != want {
			t.Errorf("%s is %v, want %v", name, got["codea1_stage_"+name], want)
		}
	}
	end(nil)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var none *stage.Meter // measures nothing
	none.Begin(1)(nil)
	none.Behind(reader)
}
