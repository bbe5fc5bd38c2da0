package gpuworker

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

var sumProblem = events.Problem{ID: "p1", Question: "Return the sum of a list.", EntryPoint: "total", Solution: "def total(xs):\n    return sum(xs)\n"}

func TestPlainPromptsHaveNoInstructions(t *testing.T) {
	got := [][]Message{
		CodePrompt(StylePlain, &sumProblem),
		TestPrompt(StylePlain, &sumProblem, "def total(xs):\n    return 0\n\n", 8),
	}
	want := [][]Message{
		{{Role: "user", Content: "Return the sum of a list."}},
		{{Role: "user", Content: "Return the sum of a list.\n```python\ndef total(xs):\n    return 0\n```"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestPaperPromptsHaveInstructions(t *testing.T) {
	for _, c := range []struct {
		name     string
		messages []Message
		needs    []string
	}{
		{"code", CodePrompt(StylePaper, &sumProblem), []string{sumProblem.Question, "`total`", "```python"}},
		{"test", TestPrompt(StylePaper, &sumProblem, "def total(xs):\n    return 0\n", 8),
			[]string{sumProblem.Question, "```python\ndef total(xs):\n    return 0\n```", "Exactly 8 tests", "assert total(arguments) == value"}},
	} {
		if len(c.messages) != 1 || c.messages[0].Role != "user" {
			t.Errorf("%s: want one user message, have %v", c.name, c.messages)
		}
		for _, need := range c.needs {
			if !strings.Contains(c.messages[0].Content, need) {
				t.Errorf("%s: prompt lacks %q:\n%s", c.name, need, c.messages[0].Content)
			}
		}
	}
	if err := Style("prose").Validate(); err == nil {
		t.Error("an unknown style is accepted")
	}
}

func TestCompletionsHaveDifferentSeeds(t *testing.T) {
	plan := events.Plan{Seed: 1}
	seen := map[uint64]string{}
	for _, group := range []string{"s000001-q0000", "s000001-q0001"} {
		for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
			for answer := range 12 {
				for suite := range 12 {
					seed := SampleSeed(&plan, group, role, answer, suite)
					if seed != SampleSeed(&plan, group, role, answer, suite) {
						t.Fatal("a seed is not a function of its arguments")
					}
					if other, ok := seen[seed]; ok {
						t.Fatalf("%s/%s/%d/%d has the seed of %s", group, role, answer, suite, other)
					}
					seen[seed] = group
				}
			}
		}
	}
	if SampleSeed(&events.Plan{Seed: 2}, "g", events.RoleCode, 0, 0) == SampleSeed(&events.Plan{Seed: 1}, "g", events.RoleCode, 0, 0) {
		t.Error("the plan's seed makes no difference")
	}
}
