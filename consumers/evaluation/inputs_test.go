package evaluation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

// trivial is whether the calls of this package's tests have a trivial input.
func trivial(call string) bool { return call == "f([])" || call == "f([3])" || call == "f([4])" }

// A suite reaches a defect by its inputs alone: a kept test that is wrong as
// stated counts, and one that was not kept does not.
func TestScoreCountsInputs(t *testing.T) {
	on := func(call string, verdict events.Verdict, wrong bool) events.ExecutedTest {
		test := kept(verdict, wrong)
		test.Call = call
		return test
	}
	raised := events.ExecutedTest{Status: events.StatusRaised, Call: "f([])", Verdict: notRun}
	defective := events.ExecutedAnswer{Loads: true, Golden: golden(fail), Suites: []events.ExecutedSuite{
		suite(on("f([1, 2])", fail, true), on("f([])", pass, false)),                  // reached, not found
		suite(on("f([1, 2])", fail, false), on("f([3])", events.VerdictRaised, true)), // reached and found
		suite(on("f([1, 2])", events.VerdictTimeout, true), raised),                   // reached, not found
		suite(on("f([])", pass, true), on("f([4])", pass, false), raised),             // not reached
	}}
	right := events.ExecutedAnswer{Loads: true, Golden: golden(pass), Suites: []events.ExecutedSuite{
		suite(on("f([])", fail, true)), // no defect to reach
		suite(on("f(3)", pass, false)), suite(on("f([3])", pass, false)), suite(on("f([6, 7])", pass, false)),
	}}
	g := group(true, 4, defective, right)
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	got, err := Score(g, trivial)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	// Kept: 2 + 2 + 1 + 2, then 4 of 1. Trivial: [] and [3] and [] and [4], then [] and [3].
	// Reached: three of four suites.
	if diff := cmp.Diff(&events.InputCounts{Kept: 11, Trivial: 6, Reached: 3}, got.Inputs); diff != "" {
		t.Error(diff)
	}
	if got.Defective != 4 || got.Found != 1 {
		t.Errorf("%d of %d defects found, want 1 of 4", got.Found, got.Defective)
	}
}
