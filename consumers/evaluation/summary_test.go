package evaluation

import (
	"context"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/stage"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSummarize(t *testing.T) {
	plan := events.Plan{Purpose: events.PurposeEval, Tag: "after", Groups: 6}
	scored := []*events.EvalScored{
		{Plan: plan, ProblemID: "a", Correct: []bool{true, true, false, false}},
		{Plan: plan, ProblemID: "b", Correct: []bool{true, true, true, true}},
		{Plan: plan, ProblemID: "c", Correct: []bool{false, false, false}}, // one answer was lost
		{Plan: plan, ProblemID: "a", Suites: 4, Wanted: 12, Stated: 10, Valid: 6, Defective: 4, Found: 1},
		{Plan: plan, ProblemID: "b", Suites: 4, Wanted: 12, Stated: 14, Valid: 9, Defective: 4, Found: 3},
	}
	got := Summarize("after", scored)
	want := Summary{
		Tag: "after", Groups: 6, Scored: 5,
		Problems: 3, Answers: 11,
		Avg: 0.5, // (0.5 + 1 + 0)/3
		// pass@1 is the mean share; pass@2 = (1 - C(2,2)/C(4,2) + 1 + 0)/3 = (5/6 + 1)/3;
		// pass@3 = (1 + 1 + 0)/3, as problem a has two wrong answers only
		PassAt: []float64{0.5, 11.0 / 18, 2.0 / 3},
		Suites: 8, ValidOfStated: 15.0 / 24, ValidOfWanted: 15.0 / 24,
		Defective: 8, FoundDefective: 0.5,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12), cmpopts.IgnoreFields(Summary{}, "AvgLow", "AvgHigh")); diff != "" {
		t.Error(diff)
	}
	if !(got.AvgLow < 0.5 && got.AvgHigh > 0.5) {
		t.Errorf("the interval [%v, %v] does not hold the mean", got.AvgLow, got.AvgHigh)
	}
}

func TestSummarizeNothing(t *testing.T) {
	s := Summarize("before", nil)
	for name, v := range map[string]float64{"avg": s.Avg, "low": s.AvgLow, "valid": s.ValidOfStated, "found": s.FoundDefective} {
		if v == v {
			t.Errorf("%s is %v, want NaN: nothing was measured", name, v)
		}
	}
}

func handle(t *testing.T, group *events.CodeExecuted) []*events.Event {
	t.Helper()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := events.New("r1", group.Plan.GroupID(), "execution-1", at, group)
	if _, err := events.Encode(in); err != nil {
		t.Fatal(err)
	}
	h := &Handler{Source: "evaluation-1", Now: func() time.Time { return at }}
	out, err := h.Handle(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range out {
		if _, err := events.Encode(e); err != nil {
			t.Fatalf("the stage made an event that cannot be encoded: %v", err)
		}
		if e.CausationID != in.ID || e.CausationHash != in.Hash() {
			t.Errorf("%s names the cause %s %s", e.Type, e.CausationID, e.CausationHash)
		}
	}
	return out
}

func TestHandler(t *testing.T) {
	out := handle(t, group(false, 0, events.ExecutedAnswer{Loads: true, Golden: golden(pass)}))
	if len(out) != 1 || out[0].Type != events.TypeEvalScored {
		t.Errorf("a held-out group: have %v", out)
	}

	training := group(false, 0, events.ExecutedAnswer{Loads: true})
	training.Plan.Purpose, training.Plan.Tag = events.PurposeTrain, ""
	if out := handle(t, training); out != nil {
		t.Errorf("a training group: have %v", out)
	}
}

func TestHandlerGivesUpOnALostGroup(t *testing.T) {
	lost := group(false, 0, events.ExecutedAnswer{Failure: "the sandbox died"})
	in := events.New("r1", lost.Plan.GroupID(), "execution-1", time.Now(), lost)
	out, err := (&Handler{Source: "evaluation-1", Now: time.Now}).Handle(context.Background(), in)
	want := stage.Drop(events.DropInfrastructure, ErrAllMasked.Error()+"; first: the sandbox died")
	if out != nil || err == nil || err.Error() != want.Error() {
		t.Errorf("have %v, %v, want %v", out, err, want)
	}
}
