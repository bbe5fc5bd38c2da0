package problems

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

// summed is a problem with the traces of two calls, written down by hand.
func summed() (*Problem, []Trace) {
	ones := func(n, total string) map[string]string {
		s := map[string]string{"n": "(" + n + ", 'int')"}
		if total != "" {
			s["total"] = "(" + total + ", 'int')"
		}
		return s
	}
	return &Problem{
			ID: "sum", Source: "made", Question: "Sum.", EntryPoint: "f", Tests: []string{"assert f(1) == 1", "assert f(0) == 0"},
			Solution: "def f(n):\n    total = 0\n    while n > 0:\n        total += n; n -= 1\n    return total\n",
		}, []Trace{
			{Call: "f(1)", Arguments: "(1,)", Value: "1", Lines: []int{2, 3, 4, 3, 5}, States: []map[string]string{ones("1", ""), ones("1", "0"), nil, ones("0", "1"), ones("0", "1")}},
			{Call: "f(0)", Arguments: "(0,)", Value: "0", Lines: []int{2, 3, 5}, States: []map[string]string{ones("0", ""), ones("0", "0"), ones("0", "0")}},
		}
}

// Each kind of question has the answers that the trace says. Which lines and variables are
// asked for depends on the seed only.
func TestPredictions(t *testing.T) {
	p, traces := summed()
	// By the question: the kind and what it accepts. Line 4 has two statements, so nothing is
	// asked about it. In f(1), line 3 has several successors and comes before line 2.
	right := map[string]events.Prediction{
		"f(1) Line 3 runs for the 1st time. Which line runs after it? Write its number.":                                                 {Kind: events.PredictNext, Accepted: []string{"4", "'total += n; n -= 1'"}},
		"f(1) Line 3 runs for the 2nd time. Which line runs after it? Write its number.":                                                 {Kind: events.PredictNext, Accepted: []string{"5", "'return total'"}},
		"f(0) Line 2 runs for the 1st time. Which line runs after it? Write its number.":                                                 {Kind: events.PredictNext, Accepted: []string{"3", "'while n > 0:'"}},
		"f(0) Line 3 runs for the 1st time. Which line runs after it? Write its number.":                                                 {Kind: events.PredictNext, Accepted: []string{"5", "'return total'"}},
		"f(1) Right before line 3 runs for the 1st time, what are the value and the type of `total`? Write a tuple, such as (1, 'int').": {Kind: events.PredictState, Accepted: []string{"(0, 'int')"}},
		"f(1) Right before line 3 runs for the 2nd time, what are the value and the type of `total`? Write a tuple, such as (1, 'int').": {Kind: events.PredictState, Accepted: []string{"(1, 'int')"}},
		"f(1) Right before line 3 runs for the 2nd time, what are the value and the type of `n`? Write a tuple, such as (1, 'int').":     {Kind: events.PredictState, Accepted: []string{"(0, 'int')"}},
		"f(0) Right before line 3 runs for the 1st time, what are the value and the type of `total`? Write a tuple, such as (1, 'int').": {Kind: events.PredictState, Accepted: []string{"(0, 'int')"}},
		"f(1) Which value does the call return?": {Kind: events.PredictOutput, Accepted: []string{"1"}},
		"f(0) Which value does the call return?": {Kind: events.PredictOutput, Accepted: []string{"0"}},
		"input With the arguments of which of these tuples does `f` return `1`? Write the tuple. `(0,)`, `(1,)`": {Kind: events.PredictInput, Accepted: []string{"(1,)"}},
		"input With the arguments of which of these tuples does `f` return `0`? Write the tuple. `(0,)`, `(1,)`": {Kind: events.PredictInput, Accepted: []string{"(0,)"}},
	}
	asked := map[string]bool{}
	for seed := range uint64(32) {
		made := p.Predictions(traces, 2, seed)
		if diff := cmp.Diff(made, p.Predictions(traces, 2, seed)); diff != "" || len(made) != 3 {
			t.Fatalf("seed %d: %d problems, and again:\n%s", seed, len(made), diff)
		}
		for i := range made {
			q := &made[i]
			if err := q.Validate(); err != nil || q.ID == p.ID || len(q.Tests) != map[bool]int{true: 2, false: 1}[i == 2] {
				t.Errorf("%s: %v, tests %q", q.ID, err, q.Tests)
			}
			if posable, _ := q.Posable(true); posable.Golden != nil || len(posable.Predict) != len(q.Predict) {
				t.Errorf("%s is posed as %+v", q.ID, posable)
			}
			about := "input"
			if i < 2 {
				about = q.Tests[0][len("assert "):len("assert f(1)")]
			}
			for j, prediction := range q.Predict {
				_, line, found := strings.Cut(q.Question, fmt.Sprintf("\n%d. ", j+1))
				line, _, _ = strings.Cut(line, "\n")
				if diff := cmp.Diff(right[about+" "+line], prediction); !found || diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", about, line, diff)
				}
				asked[about+" "+line] = true
			}
			if !strings.Contains(q.Question, "\n4 |         total += n; n -= 1\n") || !strings.Contains(q.Question, fmt.Sprintf("has %d line(s)", len(q.Predict))) {
				t.Errorf("question:\n%s", q.Question)
			}
		}
	}
	if len(asked) != len(right) {
		t.Errorf("%d questions of %d were asked", len(asked), len(right))
	}
	// Equal outputs have no input to find; a predict problem and another kind of line end
	// have no predictions.
	if made := p.Predictions(traces[:1], 9, 1); len(made) != 1 || made[0].Predict[0].Kind != events.PredictOutput {
		t.Errorf("one call: %+v", made)
	}
	lines := *p
	lines.Solution = strings.ReplaceAll(p.Solution, "\n", "\r\n")
	for _, other := range []*Problem{&lines, &p.Predictions(traces, 1, 1)[0]} {
		if made := other.Predictions(traces, 2, 1); made != nil {
			t.Errorf("%s: %+v", other.ID, made)
		}
	}
	odd := []Trace{{Call: "f(1)", Value: "1", Lines: []int{2, 9}, States: make([]map[string]string, 2)}, {Call: "f(1)", Value: "1", Lines: []int{0}, States: make([]map[string]string, 1)}, {Call: "f(1)", Value: "1", Lines: []int{2}}}
	if made := p.Predictions(odd, 9, 1); made != nil {
		t.Errorf("lines that the program does not have: %+v", made)
	}
	if len(p.Predictions(nil, 2, 1)) != 0 {
		t.Error("problems without a trace")
	}
}

type tracerOf func(tests []string) ([]Trace, error)

func (f tracerOf) Trace(_ context.Context, _, _ string, tests []string) ([]Trace, error) {
	return f(tests)
}

// The file that the command writes is a set, and a set without a trace is an error.
func TestPredictCommand(t *testing.T) {
	p, traces := summed()
	line, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out := writeFile(t, "out.jsonl", "")
	c := PredictCommand{Set: writeFile(t, "in.jsonl", string(line)), Out: out, Calls: 2, Seed: 1}
	for _, found := range [][]Trace{traces, nil} {
		tracer := tracerOf(func(tests []string) ([]Trace, error) {
			if diff := cmp.Diff(p.Tests, tests); diff != "" {
				t.Error(diff)
			}
			return found, nil
		})
		if err := c.Run(t.Context(), nil, slog.New(slog.DiscardHandler), tracer); (err == nil) != (found != nil) || err != nil && !errors.Is(err, ErrNothingPredicted) {
			t.Errorf("with %d traces: %v", len(found), err)
		}
		set, _, err := ReadAll(t.Context(), out, LoadOptions{})
		if diff := cmp.Diff(p.Predictions(traces, 2, 1), set); err != nil || diff != "" {
			t.Errorf("%v (-made +read):\n%s", err, diff)
		}
	}
	lost := errors.New("the sandbox died")
	if err := c.Run(t.Context(), nil, slog.New(slog.DiscardHandler), tracerOf(func([]string) ([]Trace, error) { return nil, lost })); !errors.Is(err, lost) || !strings.Contains(err.Error(), "problem sum") {
		t.Error(err)
	}
	if _, err := decodeJSON([]byte(`{"id":"a","predict":[{"kind":"output","accepted":"7"}]}`)); err == nil || !strings.Contains(err.Error(), "predict") {
		t.Errorf("a text in place of a list: %v", err)
	}
	q := p.Predictions(traces, 1, 1)[0]
	q.Predict[0].Kind = "later"
	if wrong := (*FieldError)(nil); !errors.As(q.Validate(), &wrong) || wrong.Field != "predict[0].kind" {
		t.Errorf("an unknown kind: %v", q.Validate())
	}
}
