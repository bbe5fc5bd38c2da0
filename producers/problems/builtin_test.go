package problems

import (
	"fmt"
	"strings"
	"testing"
)

func TestBuiltinProblemsAreValid(t *testing.T) {
	training, heldOut := Builtin()
	const maxQuestionBytes = 140 // questions are to stay short for small models
	for _, p := range append(training, heldOut...) {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", p.ID, err)
		}
		posable, omitted := p.Posable(true)
		if err := posable.Validate(); err != nil || omitted > 0 {
			t.Errorf("%s cannot be posed whole: %d tests left out, %v", p.ID, omitted, err)
		}
		if len(p.Question) > maxQuestionBytes {
			t.Errorf("%s asks at length: %s", p.ID, p.Question)
		}
		if len(p.Tests) < 7 {
			t.Errorf("%s has %d golden tests", p.ID, len(p.Tests))
		}
		if !strings.HasPrefix(p.Solution, p.StarterCode) {
			t.Errorf("%s does not begin with its starter code", p.ID)
		}
	}
	for _, p := range heldOut {
		if len(p.Buggy) < 2 {
			t.Errorf("%s has %d buggy solutions, want at least 2", p.ID, len(p.Buggy))
		}
		for _, b := range p.Buggy {
			if passesAll(t, b.Code, p.Tests) {
				t.Errorf("%s: its golden tests do not catch the %s in\n%s", p.ID, b.BugType, b.Code)
			}
		}
	}
}

func passesAll(t *testing.T, code string, tests []string) bool {
	t.Helper()
	f := parse(t, code)
	for _, test := range tests {
		input, want := readAssert(t, test)
		if got, err := f.Call(input...); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			return false
		}
	}
	return true
}

func TestMutants(t *testing.T) {
	training, _ := Builtin()
	for _, p := range training[:20] {
		mutants, err := Mutants(&p)
		if err != nil || len(mutants) < 2 {
			t.Errorf("%s: %d mutants, %v", p.ID, len(mutants), err)
		}
		for _, m := range mutants {
			if m.Code == p.Solution || m.BugType == "" {
				t.Errorf("%s: no mutant: %+v", p.ID, m)
			}
		}
	}
	if _, err := Mutants(&Problem{ID: "HumanEval/0", Source: "human-eval"}); err == nil {
		t.Error("a problem from elsewhere has mutants")
	}
}
