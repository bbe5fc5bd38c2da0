package events

import (
	"fmt"
	"testing"
)

// A group has no more than MaxCrossTests tests, and the first tests of every suite
// come before the second ones.
func TestCrossTestsAreBounded(t *testing.T) {
	var g CodeExecuted
	for m := range 3 {
		suite := ExecutedSuite{}
		for i := range MaxCrossTests {
			suite.Tests = append(suite.Tests, ExecutedTest{Status: StatusKept, Call: fmt.Sprintf("f(%d, %d)", m, i), Expected: "1", Stated: "1"})
		}
		g.Answers = append(g.Answers, ExecutedAnswer{Loads: true, Suites: []ExecutedSuite{suite}})
	}
	g.Answers[1].Suites[0].Failure = "sandbox died"
	tests := g.CrossTests()
	if len(tests) != MaxCrossTests || tests[1] != (CrossTest{"f(2, 0)", "1"}) {
		t.Errorf("%d tests, the second is %v", len(tests), tests[1])
	}
}

func TestCrossIsChecked(t *testing.T) {
	row := func(b ...byte) []Bits { return []Bits{b} }
	for name, c := range map[string]Cross{
		"a test that passed and failed": {Tests: 2, Passed: row(1), Failed: row(1)},
		"a bit after the last test":     {Tests: 2, Passed: row(4), Failed: row(0)},
		"a byte too many":               {Tests: 8, Passed: row(1, 0), Failed: row(0, 0)},
		"rows of two lengths":           {Tests: 8, Passed: row(1), Failed: row()},
		"no row of an answer":           {Tests: 0},
		"too many tests":                {Tests: MaxCrossTests + 1, Passed: row(), Failed: row()},
		"less than no test":             {Tests: -1, Passed: row(), Failed: row()},
	} {
		if err := c.validate(1); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for _, c := range []Cross{{Tests: 9, Passed: row(255, 0), Failed: row(0, 1)}, {Tests: 9, Passed: row(), Failed: row()}} {
		if err := c.validate(1); err != nil {
			t.Error(err)
		}
	}
}
