package execution

import (
	"context"
	"slices"
	"time"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

// KnownTest is a golden test about the value of one call, which the ground truth has made
// already.
type KnownTest struct {
	Source string // its text
	// Call is its call. The value is compared with that in Truth. A test without a call
	// is planned from its text.
	Call  string
	Truth sandbox.Outcome
	// Accepts decides about a value in place of the comparison; nil: the comparison does.
	Accepts func(literal.Value) bool
}

// PlanKnown is PlanGolden for tests with known values, so that the ground truth does not
// run again. load is the time that it took to load.
func (x *Executor) PlanKnown(ctx context.Context, truth sandbox.Program, load time.Duration, tests []KnownTest, atol float64) (*GoldenPlan, error) {
	var sources []string // of the tests that are planned from their text
	var places []int     // and their indices among all
	var checks []goldenCheck
	var scripts []goldenScript
	took := map[string]time.Duration{}
	for i := range tests {
		t := &tests[i]
		digest := t.Truth.Digest()
		switch {
		case t.Call != "" && t.Accepts != nil, t.Call != "" && t.Truth.Value != nil && literal.SelfEqual(t.Truth.Value):
			checks = append(checks, goldenCheck{test: i, source: t.Source, expectation: expectation{t.Call, t.Truth.Value}, accepts: t.Accepts})
		case t.Call != "" && t.Truth.Value == nil && digest != "":
			script := goldenScript{test: i, source: t.Source, calls: []string{t.Call}, returned: digest}
			script.took = timed{sum: load + 2*t.Truth.Took, most: load + 2*t.Truth.Took} // it runs the ground truth, too
			scripts = append(scripts, script)
		default:
			sources, places = append(sources, t.Source), append(places, i)
			continue
		}
		took[t.Call] = t.Truth.Took
	}
	plan, err := x.PlanGolden(ctx, truth, sources, atol)
	if err != nil {
		return nil, err
	}
	for i := range plan.checks {
		plan.checks[i].test = places[plan.checks[i].test]
	}
	for i := range plan.scripts {
		plan.scripts[i].test = places[plan.scripts[i].test]
	}
	plan.tests, plan.load = len(tests), max(plan.load, load)
	plan.checks, plan.scripts = append(plan.checks, checks...), append(plan.scripts, scripts...)
	plan.digests = plan.digests || len(scripts) > 0
	for call, t := range plan.took {
		took[call] = t
	}
	plan.took = took
	slices.SortFunc(plan.checks, func(a, b goldenCheck) int { return a.test - b.test })
	return plan, nil
}
