package evaluation

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

var config = Config{Answers: 8, Suites: 4, Tests: 3, Temperature: 1, CodeTokens: 2048, TestTokens: 2048}

func item(id string, buggy ...string) Item {
	return Item{
		Problem: events.Problem{ID: id, Question: "q", EntryPoint: "solve", Solution: "def solve(): return 1", Golden: []string{"assert solve() == 1"}},
		Buggy:   buggy,
	}
}

func TestGroups(t *testing.T) {
	groups, err := Groups("before", []Item{item("a", "x", "y", "z"), item("b"), item("c", "w")}, config)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		id                     string
		problem                string
		slot, groups           int
		answers, suites, tests int
		given                  []string
	}
	var got []row
	for _, g := range groups {
		if len(g.Problem.Golden) == 0 {
			t.Errorf("slot %d has no golden tests", g.Plan.Slot)
		}
		got = append(got, row{g.Plan.GroupID(), g.Problem.ID, g.Plan.Slot, g.Plan.Groups, g.Plan.Answers, g.Plan.Suites, g.Plan.Tests, g.Given})
	}
	want := []row{
		{"e-before-0000", "a", 0, 5, 8, 0, 0, nil},
		{"e-before-0001", "a", 1, 5, 2, 4, 3, []string{"x", "y"}},
		{"e-before-0002", "b", 2, 5, 8, 0, 0, nil},
		{"e-before-0003", "c", 3, 5, 8, 0, 0, nil},
		{"e-before-0004", "c", 4, 5, 1, 4, 3, []string{"w"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Error(diff)
	}
}

func TestGroupsLeavesOutARole(t *testing.T) {
	onlyCode, onlyTest := config, config
	onlyCode.Suites, onlyTest.Answers = 0, 0
	for name, config := range map[string]Config{"code": onlyCode, "test": onlyTest} {
		groups, err := Groups("t", []Item{item("a", "x")}, config)
		if err != nil || len(groups) != 1 || (len(groups[0].Given) > 0) != (name == "test") {
			t.Errorf("only %s: have %+v, %v", name, groups, err)
		}
	}
}

func TestGroupsNamesABadProblem(t *testing.T) {
	bad := item("a")
	bad.Problem.Golden = nil
	if _, err := Groups("t", []Item{bad}, config); !errors.Is(err, ErrNoGolden) {
		t.Errorf("have %v, want %v", err, ErrNoGolden)
	}
	// A predict problem has no golden tests, and its answers have no suites.
	bad.Problem.Predict = []events.Prediction{{Kind: events.PredictOutput, Accepted: []string{"1"}}}
	if groups, err := Groups("t", []Item{bad}, config); err != nil || len(groups) != 1 || groups[0].Plan.Suites != 0 {
		t.Errorf("a predict problem: %+v, %v", groups, err)
	}
	onAnswers := config
	onAnswers.OnAnswers = 2
	if _, err := Groups("t", []Item{bad}, onAnswers); err == nil || !strings.Contains(err.Error(), "problem a: event field problem.predict") {
		t.Errorf("suites about predictions: %v", err)
	}
	var field *events.FieldError
	if _, err := Groups("a tag with spaces", []Item{item("a")}, config); !errors.As(err, &field) {
		t.Errorf("have %v, want an error that names the field", err)
	}
}

// With OnAnswers, the sampled answers have suites, too.
func TestGroupsWithSuitesOnAnswers(t *testing.T) {
	c := config
	c.OnAnswers, c.Suites = 2, 0
	groups, err := Groups("t", []Item{item("a", "x")}, c)
	if err != nil || len(groups) != 1 || groups[0].Plan.Answers != 8 || groups[0].Plan.Suites != 2 || groups[0].Plan.Tests != 3 || groups[0].Given != nil {
		t.Errorf("%+v, %v", groups, err)
	}
}
