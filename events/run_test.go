package events

import "testing"

// TestEvalScoredWithInputs checks that an eval.scored is valid without counted inputs,
// and that no count of them is larger than its whole.
func TestEvalScoredWithInputs(t *testing.T) {
	plan := samplePlan()
	plan.Purpose, plan.Tag = PurposeEval, "before"
	for _, c := range []struct {
		inputs *InputCounts
		valid  bool
	}{
		{nil, true},
		{&InputCounts{Kept: 11, Trivial: 11, Reached: 4}, true},
		{&InputCounts{Kept: 12, Trivial: 0, Reached: 2}, false}, // of 11 tests
		{&InputCounts{Kept: 5, Trivial: 6, Reached: 2}, false},
		{&InputCounts{Kept: 5, Trivial: -1, Reached: 2}, false},
		{&InputCounts{Kept: 5, Trivial: 0, Reached: 5}, false}, // of 4 defects
		{&InputCounts{Kept: 5, Trivial: 0, Reached: 1}, false}, // with 2 found
	} {
		scored := EvalScored{Plan: plan, ProblemID: "p", Suites: 4, Wanted: 12, Stated: 11, Right: 7, Defective: 4, Found: 2, Inputs: c.inputs}
		if err := scored.Validate(); (err == nil) != c.valid {
			t.Errorf("%+v: %v", c.inputs, err)
		}
	}
}
