package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/stage"
	"codea1/replay/internal/replaytest"
)

// record runs a recorder until its log has as many events.
func record(t *testing.T, bus Bus, l *Log, until uint64, batch int, config RecorderConfig) (heard []events.Message, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	config.Run = replaytest.Run
	config.OnAppend = func(_ context.Context, appended []events.Message) error {
		heard = append(heard, appended...)
		if last, _ := l.Last(); last >= until {
			cancel()
		}
		return nil
	}
	r, err := NewRecorder(bus, l, config)
	if err != nil {
		t.Fatal(err)
	}
	r.maxBatch = batch
	err = r.Run(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatal("the recorder did not get there")
	}
	return heard, err
}

func TestRecorderContinuesAtTheLogsPosition(t *testing.T) {
	t.Parallel()
	var messages []events.Message
	for slot := range 30 {
		messages = append(messages, replaytest.Group(t, slot)...)
	}
	bus := replaytest.NewMemoryBus(messages[:50]...)
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	heard, err := record(t, bus, l, 50, 7, RecorderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := bus.Publish(t.Context(), messages[40:]...); err != nil { // some of them again
		t.Fatal(err)
	}
	l = openLog(t, dir, Options{})
	registry := prometheus.NewRegistry()
	meter, err := stage.NewMeter(stage.Config{Name: "recorder", Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	more, err := record(t, bus, l, 90, 1, RecorderConfig{Meter: meter})
	if err != nil {
		t.Fatal(err)
	}
	if n := handled(t, registry); n != 50 {
		t.Errorf("the meter has %v", n)
	}
	if diff := cmp.Diff(messages, append(heard, more...)); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(messages, allMessages(t, l, ReadOptions{})); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if l.Position() != "100" {
		t.Errorf("position %q, want 100", l.Position())
	}
	mustVerify(t, l)
}

// A lineage conflict drops its group once, even if the recorder dies between the refusal
// of an event and the publishing of the drop.
func TestRecorderDropsLineageConflict(t *testing.T) {
	p := replaytest.Posed(1, "What is f?")
	messages := []events.Message{replaytest.Encode(t, p)}
	stands, lost := replaytest.Sampled(p, "return 1"), replaytest.Sampled(p, "return 2")
	messages = append(messages, replaytest.Encode(t, stands), replaytest.Encode(t, lost))
	messages = append(messages, replaytest.Encode(t, replaytest.Rewarded(lost, replaytest.Delta("f(2)", 1))))
	bus := replaytest.NewMemoryBus(messages...)
	bus.Refuse = errors.New("broker is gone")
	l := openLog(t, t.TempDir(), Options{})
	if _, err := record(t, bus, l, 3, maxBatch, RecorderConfig{}); !errors.Is(err, bus.Refuse) {
		t.Fatalf("recorder: %v, want %v", err, bus.Refuse)
	}
	if l.Position() != "4" {
		t.Fatalf("position %q, want 4: the refusal is committed", l.Position())
	}
	bus.Refuse = nil
	heard, err := record(t, bus, l, 3, maxBatch, RecorderConfig{Source: "log-0", Now: func() time.Time { return replaytest.Time }})
	if err != nil {
		t.Fatal(err)
	}
	if len(heard) != 1 || len(bus.Messages) != 5 {
		t.Fatalf("heard %d events, bus has %d", len(heard), len(bus.Messages))
	}
	e, err := heard[0].Decode()
	if err != nil {
		t.Fatal(err)
	}
	plan := replaytest.Plan(1)
	want := &events.GroupDropped{
		Purpose: plan.Purpose, Step: plan.Step, Slot: plan.Slot, Groups: plan.Groups, Stage: "log-0", Reason: events.DropLineage,
		Detail: fmt.Sprintf("code.sampled %s was published with two payloads; the first stands, and events that follow from the other are left out", messages[1].ID),
	}
	if diff := cmp.Diff(want, e.Payload); diff != "" || e.CausationID != messages[1].ID || e.Group != plan.GroupID() {
		t.Errorf("dropped %+v (-want +got):\n%s", e.Envelope, diff)
	}
	mustVerify(t, l)
}

// With KeepTokens a recorder keeps the tokens of the last steps, and those of groups that
// are still to be trained on.
func TestRecorderKeepsTokensOfTheLastSteps(t *testing.T) {
	t.Parallel()
	s := replaytest.NewStory(t)
	s.Start()
	for step := 1; step <= 4; step++ {
		s.Step(step)
	}
	s.Group(s.Plan(events.PurposeTrain, 5, 0))
	l := openLog(t, t.TempDir(), Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	r, err := NewRecorder(replaytest.NewMemoryBus(s.Messages...), l, RecorderConfig{Run: replaytest.Run, KeepTokens: 2})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	const perStep = replaytest.Groups * 2
	for l.compactedTo().events < 2*perStep && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if report := mustVerify(t, l); report.Compacted != 2*perStep {
		t.Errorf("%d payloads are compacted, want %d", report.Compacted, 2*perStep)
	}
	for r, err := range l.Read(t.Context(), ReadOptions{Types: TokenTypes}) {
		if err != nil {
			t.Fatal(err)
		}
		if step, _ := StepOf(&r.Message); r.Compacted != (step <= 2) {
			t.Errorf("step %d: compacted %t", step, r.Compacted)
		}
	}
}

func TestRecorderEndsWithItsCollaborators(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{})
	bus := replaytest.NewMemoryBus(replaytest.Group(t, 1)...)
	broken := errors.New("curriculum is broken")
	r, err := NewRecorder(bus, l, RecorderConfig{Run: replaytest.Run, OnAppend: func(context.Context, []events.Message) error { return broken }})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("run: %v, want %v", err, broken)
	}
	for _, config := range []RecorderConfig{{}, {Run: "a b"}, {Run: replaytest.Run, KeepTokens: -1}} {
		if _, err := NewRecorder(bus, l, config); err == nil || !strings.HasPrefix(err.Error(), "recorder: ") {
			t.Errorf("%+v: %v", config, err)
		}
	}
}

// handled returns the count of the registry's meter.
func handled(t *testing.T, registry *prometheus.Registry) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "codea1_stage_handled_total" {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
