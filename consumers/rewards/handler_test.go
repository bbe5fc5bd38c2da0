package rewards

import (
	"context"
	"strings"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func executed(t *testing.T, purpose events.Purpose, answers ...events.ExecutedAnswer) *events.Event {
	t.Helper()
	plan := events.Plan{Purpose: purpose, Step: 3, Slot: 1, Groups: 2, Answers: len(answers), Suites: 1, Tests: 2, Temperature: 1}
	if purpose == events.PurposeEval {
		plan.Tag = "before"
	}
	e := events.New("r1", plan.GroupID(), "execution-1", noon, &events.CodeExecuted{Plan: plan, ProblemID: "p", Answers: answers})
	if purpose == events.PurposeTrain { // a stage takes only an event with a cause of its group
		e = events.Caused(eventstest.Posed("r1", plan.Step, plan.Slot), e.Source, noon, e.Payload)
	}
	if _, err := events.Encode(e); err != nil {
		t.Fatal(err)
	}
	return e
}

func handle(t *testing.T, e *events.Event) []*events.Event {
	t.Helper()
	h := &Handler{Recipe: A1(DefaultAlpha), Source: "rewards-1", Now: func() time.Time { return noon }}
	out, err := h.Handle(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range out {
		if _, err := events.Encode(e); err != nil {
			t.Fatalf("the stage made an event that cannot be encoded: %v", err)
		}
	}
	return out
}

func TestHandlerRewardsATrainingGroup(t *testing.T) {
	in := executed(t, events.PurposeTrain, events.ExecutedAnswer{
		Loads: true, Suites: []events.ExecutedSuite{{Chars: 9, Tests: []events.ExecutedTest{kept(pass), kept(fail)}}},
	})
	out := handle(t, in)
	if len(out) != 1 || out[0].Type != events.TypeGroupRewarded || out[0].CausationID != in.ID || out[0].CausationHash != in.Hash() {
		t.Fatalf("have %+v", out)
	}
	if again := handle(t, in); again[0].ID != out[0].ID || again[0].Hash() != out[0].Hash() {
		t.Error("a redelivery made another event")
	}
}

func TestHandlerLeavesEvaluationAlone(t *testing.T) {
	in := executed(t, events.PurposeEval, events.ExecutedAnswer{Loads: true, Suites: make([]events.ExecutedSuite, 1)})
	if out := handle(t, in); out != nil {
		t.Errorf("have %d events, want none", len(out))
	}
}

// TestStageDropsALostGroupByName runs the handler in its stage, on a real bus.
func TestStageDropsALostGroupByName(t *testing.T) {
	bus := natstest.Bus(t)
	in := executed(t, events.PurposeTrain,
		events.ExecutedAnswer{Loads: true, Suites: []events.ExecutedSuite{{Failure: "sandbox: broken pipe"}}},
		events.ExecutedAnswer{Failure: "sandbox: killed"})
	message, err := events.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.Publish(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	h := &Handler{Recipe: A1(DefaultAlpha), Source: "rewards-1", Now: func() time.Time { return noon }}
	s, err := stage.New(stage.Config{
		Bus: bus, Run: "r1", Name: events.StageRewards, Instance: "1", Types: []events.Type{events.TypeCodeExecuted}, Handler: stage.Each(h.Handle),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	reader, err := bus.Read(ctx, events.ReadConfig{Run: "r1", Types: []events.Type{events.TypeGroupDropped}})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	dropped, _, err := reader.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	e, err := dropped.Decode()
	if err != nil {
		t.Fatal(err)
	}
	d := e.Payload.(*events.GroupDropped)
	if d.Reason != events.DropInfrastructure || d.Stage != events.StageRewards || d.Step != 3 || d.Slot != 1 || d.Groups != 2 {
		t.Errorf("have %+v", d)
	}
	if !strings.Contains(d.Detail, "broken pipe") || e.CausationID != in.ID {
		t.Errorf("the detail %q does not name the first failure, or %s the cause", d.Detail, e.CausationID)
	}
}

func TestHandlerRefusesOtherEvents(t *testing.T) {
	e := events.New("r1", "g", "x", noon, &events.StageHeartbeat{Stage: "x"})
	if _, err := (&Handler{Recipe: Golden()}).Handle(context.Background(), e); err == nil {
		t.Error("a heartbeat was rewarded")
	}
}
