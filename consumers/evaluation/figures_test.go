package evaluation

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codea1/events"
	"codea1/events/stage"
)

func TestFigures(t *testing.T) {
	plan := events.Plan{Purpose: events.PurposeEval, Tag: "after", Groups: 6}
	scored := []*events.EvalScored{
		{Plan: plan, ProblemID: "a", Correct: []bool{true, true, false, false}},
		{Plan: plan, ProblemID: "b", Correct: []bool{true, true, true, true}},
		{Plan: plan, ProblemID: "c", Correct: []bool{false, false, false}}, // one answer was lost
		{Plan: plan, ProblemID: "a", Suites: 4, Wanted: 12, Stated: 10, Right: 6, Defective: 4, Found: 1, Inputs: &events.InputCounts{Kept: 8, Trivial: 2, Reached: 3}},
		{Plan: plan, ProblemID: "b", Suites: 4, Wanted: 12, Stated: 14, Right: 9, Defective: 4, Found: 3, Inputs: &events.InputCounts{Kept: 12, Trivial: 3, Reached: 3}},
		{Plan: plan, ProblemID: "c", Suites: 4, Wanted: 12, Stated: 6, Right: 0, Defective: 2}, // an older build has not counted the inputs
	}
	got := figures(scored...)
	want := Figures{
		Groups: 6, Scored: 6, Problems: 3, Answers: 4,
		Suites: 12, Stated: 30, Right: 15, Defective: 10, Found: 4,
		Kept: 20, Trivial: 5, Searched: 8, Reached: 6,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Figures{})); diff != "" {
		t.Error(diff)
	}
	type derived struct {
		Avg, Validity, DefectFinding, Reach, TrivialInputs float64
		PassAt                                             []float64
	}
	wantDerived := derived{
		Avg:      0.5, // (0.5 + 1 + 0)/3
		Validity: 0.5, DefectFinding: 0.4, Reach: 0.75, TrivialInputs: 0.25,
		// pass@1 is the mean share; pass@2 = (1 - C(2,2)/C(4,2) + 1 + 0)/3 = (5/6 + 1)/3;
		// pass@3 = (1 + 1 + 0)/3, as problem a has two wrong answers only
		PassAt: []float64{0.5, 11.0 / 18, 2.0 / 3},
	}
	gotDerived := derived{got.Avg(), got.Validity(), got.DefectFinding(), got.Reach(), got.TrivialInputs(), got.PassAt()}
	if diff := cmp.Diff(wantDerived, gotDerived, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Error(diff)
	}
	if low, high := got.AvgInterval(); !(low < 0.5 && high > 0.5) {
		t.Errorf("the interval [%v, %v] does not hold the mean", low, high)
	}
}

func figures(scored ...*events.EvalScored) (f Figures) {
	for _, e := range scored {
		f.Add(e)
	}
	return f
}

func TestFiguresOfNothing(t *testing.T) {
	var f Figures
	low, _ := f.AvgInterval()
	for name, v := range map[string]float64{"avg": f.Avg(), "low": low, "validity": f.Validity(), "found": f.DefectFinding(), "reach": f.Reach(), "trivial": f.TrivialInputs()} {
		if !math.IsNaN(v) {
			t.Errorf("%s is %v, want NaN without a measurement", name, v)
		}
	}
	if got := f.PassAt(); len(got) != 0 {
		t.Errorf("pass@k is %v without a problem", got)
	}
}

// TestChangesArePaired checks that only problems of both evaluations count, each
// with its own change.
func TestChangesArePaired(t *testing.T) {
	before := figures(
		&events.EvalScored{ProblemID: "h0", Correct: []bool{true, false}},
		&events.EvalScored{ProblemID: "h1", Correct: []bool{false, false}},
		&events.EvalScored{ProblemID: "h2", Correct: []bool{true, true}}) // is not in after
	after := figures(
		&events.EvalScored{ProblemID: "h1", Correct: []bool{true, true}},
		&events.EvalScored{ProblemID: "h0", Correct: []bool{true, false}})
	if diff := cmp.Diff([]float64{0, 1}, Changes(&before, &after)); diff != "" {
		t.Error(diff)
	}
}

func handle(t *testing.T, group *events.CodeExecuted) []*events.Event {
	t.Helper()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := events.New("r1", group.Plan.GroupID(), "execution-1", at, group)
	if _, err := events.Encode(in); err != nil {
		t.Fatal(err)
	}
	h := &Handler{Source: "evaluation-1", Now: func() time.Time { return at }, Trivial: trivial}
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
