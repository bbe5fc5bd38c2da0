//go:build unix

package main

import (
	"context"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/services"
)

// When a stage hangs, the schedule bounds the groups that wait for it: with a
// staleness of 1 they are the groups of two steps. No more groups are posed until a
// step is trained. The lag shows their number.
func TestUpstreamWaits(t *testing.T) {
	t.Parallel()
	sizes := benchSizes
	sizes.Steps, sizes.ProblemsPerStep, sizes.Answers, sizes.Suites = 6, 12, 2, 2
	const open = 2 * 12 // groups of the next step and of the one ahead
	p := newPipeline(t, sizes)
	p.lagEvery = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	g, stop := services.NewGroup(ctx)
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	until := func(what string, is func() bool) {
		t.Helper()
		for ; !is(); time.Sleep(5 * time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatalf("never: %s", what)
			}
		}
	}
	// bounded checks that no more groups are posed than may be open.
	bounded := func(when string) {
		t.Helper()
		until("the log has the open groups", func() bool { return p.posed.Load() >= open })
		if n := p.posed.Load(); n != open {
			t.Errorf("%d groups were posed %s, want %d", n, when, open)
		}
		for _, name := range []string{"rollout-code", "rollout-test", "rewards"} {
			if lag, err := p.bus.Lag(ctx, pipelineRun, name); err != nil || lag.Pending+lag.InFlight > open {
				t.Errorf("lag of %s %s: %+v, %v", name, when, lag, err)
			}
		}
	}

	// The sandbox hangs.
	gate := make(chan struct{})
	p.startWorkers(t, g, func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		select {
		case <-gate:
			return executeNothing(ctx, e)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	p.begin(ctx, t)
	until("all open groups wait for execution, and the metrics say so", func() bool {
		m := stageGauges(t, p, "execution")
		return m["codea1_stage_lag_events"]+m["codea1_stage_unanswered_events"] == open &&
			m["codea1_stage_busy_ratio"] > 0 && m["codea1_stage_in_flight_events"] >= pipelineExecutions
	})
	if held := stageGauges(t, p, "execution")["codea1_stage_in_flight_events"]; held != pipelineExecutions {
		t.Errorf("a process that handles %d events at a time holds %v", pipelineExecutions, held)
	}
	bounded("while execution hangs")

	// The sandbox works again, without a trainer.
	close(gate)
	until("all open groups are rewarded", func() bool { return p.rewarded.Load() == open })
	bounded("while nothing is trained")

	// The trainers start, and the run is completed.
	p.startTrainers(t, g)
	until("the run is finished", func() bool {
		select {
		case <-p.finished:
			return true
		case <-g.Done():
			t.Fatal(stop())
		default:
		}
		return false
	})
	if posed, rewarded, want := p.posed.Load(), p.rewarded.Load(), int64(sizes.Steps*sizes.ProblemsPerStep); posed != want || rewarded != want {
		t.Errorf("%d groups were posed and %d rewarded, want %d", posed, rewarded, want)
	}
}

// stageGauges returns the gauges of a stage, by name.
func stageGauges(t *testing.T, p *pipeline, name string) map[string]float64 {
	t.Helper()
	families, err := p.staging.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == name && m.GetGauge() != nil {
				values[f.GetName()] = m.GetGauge().GetValue()
			}
		}
	}
	return values
}
