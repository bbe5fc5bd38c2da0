package export

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

// crossedGroup is a group of one suite. The answers with a p in the i-th text pass its test
// f(i), and those with an f fail it.
func crossedGroup(slot int, verdicts ...string) *events.CodeExecuted {
	g := &events.CodeExecuted{Plan: events.Plan{Purpose: events.PurposeTrain, Step: 1, Slot: slot}, Answers: make([]events.ExecutedAnswer, len(verdicts[0]))}
	suite := events.ExecutedSuite{}
	for i := range verdicts {
		suite.Tests = append(suite.Tests, events.ExecutedTest{Status: events.StatusKept, Call: fmt.Sprintf("f(%d)", i), Expected: "1", Stated: "2", Wrong: i == 0})
	}
	g.Answers[0].Suites = []events.ExecutedSuite{suite}
	tests := g.CrossTests()
	g.Cross = events.NewCross(len(tests), len(g.Answers))
	for i, test := range tests {
		var at int
		if _, err := fmt.Sscanf(test.Call, "f(%d)", &at); err != nil {
			panic(err)
		}
		for m, letter := range verdicts[at] {
			g.Cross.Set(m, i, map[rune]events.Verdict{'p': events.VerdictPass, 'f': events.VerdictFail, 'n': events.VerdictNotRun}[letter])
		}
	}
	return g
}

// A hardened set has the hardest tests first, without those that under a tenth of the
// answers pass, with five tests of one pattern at most, and no value that is wrong
// as stated. A problem with fewer than five tests is left out.
func TestHardened(t *testing.T) {
	set := newHardenedSet()
	if _, err := set.rows("r"); !errors.Is(err, ErrNoCross) {
		t.Errorf("an empty log: %v", err)
	}
	uncrossed := crossedGroup(0, "p")
	uncrossed.Cross = nil
	set.add(&events.Problem{ID: "p"}, uncrossed)
	if _, err := set.rows("r"); !errors.Is(err, ErrNoCross) {
		t.Errorf("a log without a cross: %v", err)
	}
	few := crossedGroup(0, "pf", "fp", "pp", "ff")
	set.add(&events.Problem{ID: "few"}, few)
	if _, err := set.rows("r"); !errors.Is(err, ErrNothingHardened) {
		t.Errorf("three tests that tell answers apart: %v", err)
	}
	const tenth, less = "pfffffffff", "pffffffffff" // 1 of 10, 1 of 11
	half, all := "pppppfffff", "pppppppppp"
	set.add(&events.Problem{ID: "many", Solution: "def f(x): return 1"}, crossedGroup(1, all, half, half, half, tenth, half, half, half, "ffffffffff", "nnnnnnnnnn"))
	rows, err := set.rows("r")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"assert f(4) == 1", "assert f(1) == 1", "assert f(2) == 1", "assert f(3) == 1", "assert f(5) == 1", "assert f(6) == 1", "assert f(0) == 1"}
	if len(rows) != 1 || rows[0].ID != "many" || rows[0].Solution != "def f(x): return 1" {
		t.Fatalf("rows %+v", rows)
	}
	if diff := cmp.Diff(want, rows[0].Tests); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	set.problems["many"].problem.Golden = []string{"assert f(9) == 1", "assert f(1) == 1"}
	if rows, err = set.rows("r"); err != nil || len(rows[0].Tests) != 8 || rows[0].Tests[0] != "assert f(9) == 1" {
		t.Errorf("with golden tests: %v, %v", rows, err)
	}
	set.problems["many"].problem.Atol = 0.5 // a row has no place for it
	if rows, err = set.rows("r"); err != nil || len(rows[0].Tests) != len(want) {
		t.Errorf("with golden tests that need a tolerance: %v, %v", rows, err)
	}
	// In a second group, f(0) is passed by 1 of 11, in both by 11 of 21; the tests of
	// two groups have other patterns than those of one.
	set.add(&events.Problem{ID: "many"}, crossedGroup(2, less, "ppppppppppp"))
	if rows, err = set.rows("r"); err != nil || len(rows[0].Tests) != 8 {
		t.Errorf("after a second group: %v, %v", rows, err)
	}
	// A log of a stranger: more bits than tests.
	odd := crossedGroup(3, all)
	odd.Cross.Tests = 80
	set.add(&events.Problem{ID: "odd"}, odd)
}

// The memory for a problem does not grow with the number of its tests.
func TestHardenedIsBounded(t *testing.T) {
	set, problem := newHardenedSet(), events.Problem{ID: "p"}
	for slot := range 40 {
		verdicts := make([]string, 100)
		for i := range verdicts {
			verdicts[i] = "pf"
		}
		g := crossedGroup(slot, verdicts...)
		for i := range g.Answers[0].Suites[0].Tests {
			test := &g.Answers[0].Suites[0].Tests[i]
			test.Call = fmt.Sprintf("f(%d, %d)", slot, i)
		}
		set.add(&problem, g)
	}
	rows, err := set.rows("r")
	if err != nil {
		t.Fatal(err)
	}
	if kept := len(set.problems["p"].tests); kept > 4*maxGoldenTests || len(rows[0].Tests) != 40*hardenedPattern {
		t.Errorf("%d tests are kept, %d written; want five of each of 40 patterns", kept, len(rows[0].Tests))
	}
}
