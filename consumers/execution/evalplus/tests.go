package evalplus

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"codea1/consumers/execution"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

const (
	// floatAtol is the tolerance of a task without one that returns floats.
	floatAtol = 1e-6
	// maxTestBytes bounds the text of one test with its value, and maxTestsBytes that of
	// all tests of a problem, which an event carries. Tests over a bound compute the
	// value again.
	maxTestBytes  = 64 << 10
	maxTestsBytes = 1 << 20
)

// Problem is a task with golden tests, as a row of a problem file.
type Problem struct {
	ID         string   `json:"id"`
	Source     string   `json:"source"`
	Question   string   `json:"question"`
	EntryPoint string   `json:"entry_point"`
	Solution   string   `json:"solution"`
	Tests      []string `json:"tests"`
	BaseTests  int      `json:"base_tests"` // the first ones; the others are plus tests
	Atol       float64  `json:"atol,omitempty"`
}

// Problem runs the ground truth on the inputs and returns the problem with one
// golden test per input.
func (t *Task) Problem(ctx context.Context, x *execution.Executor) (*Problem, error) {
	inputs := t.inputs()
	calls := make([]string, len(inputs))
	for i, given := range inputs {
		calls[i] = t.EntryPoint + arguments(given)
	}
	expected := make([]sandbox.Outcome, 0, len(calls))
	truth := sandbox.Program{Code: t.Solution(), EntryPoint: t.EntryPoint}
	for len(expected) < len(calls) { // a slow ground truth needs the time of several jobs
		report, err := x.RunTruth(ctx, truth, calls[len(expected):])
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", t.ID, err)
		}
		if !report.Loads {
			return nil, fmt.Errorf("task %s: the ground truth does not load: %s", t.ID, report.LoadError)
		}
		reached := slices.IndexFunc(report.Outcomes, func(o sandbox.Outcome) bool { return o.Kind == sandbox.NotRun })
		if reached < 0 {
			reached = len(report.Outcomes)
		}
		expected = append(expected, report.Outcomes[:max(reached, 1)]...)
	}
	p := &Problem{
		ID: t.ID, Source: "evalplus", Question: t.Prompt, EntryPoint: t.EntryPoint, Solution: t.Solution(),
		Tests: make([]string, len(calls)), BaseTests: t.BaseTests(), Atol: t.Atol,
	}
	bytes := 0
	for i, call := range calls {
		o := &expected[i]
		if o.Kind != sandbox.Returned {
			return nil, fmt.Errorf("task %s: the ground truth %s on input %d: %s", t.ID, o.Kind, i, o.Detail)
		}
		if p.Atol == 0 && floats(o.Value) {
			p.Atol = floatAtol
		}
		p.Tests[i] = t.test(call, inputs[i], *o)
		bytes += len(p.Tests[i])
	}
	bytes -= p.computeLargest(calls, bytes)
	if bytes > events.MaxPayloadBytes/4 {
		return nil, fmt.Errorf("task %s: its tests are %d bytes, more than an event carries", t.ID, bytes)
	}
	return p, nil
}

// computeLargest replaces the tests over the bounds by such that compute the value
// again, the largest first. It returns by how many bytes the tests are shorter.
func (p *Problem) computeLargest(calls []string, bytes int) (saved int) {
	order := make([]int, len(p.Tests))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(p.Tests[b]) - len(p.Tests[a]) })
	for _, i := range order {
		if len(p.Tests[i]) <= maxTestBytes && bytes-saved <= maxTestsBytes {
			break
		}
		again := p.recompute(calls[i])
		if len(again) >= len(p.Tests[i]) {
			break
		}
		saved += len(p.Tests[i]) - len(again)
		p.Tests[i] = again
	}
	return saved
}

// recompute returns a test that computes the value of a call with the ground truth.
func (p *Problem) recompute(call string) string {
	return execution.RecomputedTest(p.Solution, p.EntryPoint, strings.TrimPrefix(call, p.EntryPoint))
}

// arguments writes the arguments of a call in brackets.
func arguments(given literal.Tuple) string {
	texts := make([]string, len(given))
	for i, v := range given {
		texts[i] = literal.Text(v)
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

// floats reports whether EvalPlus compares a value with a tolerance: a float, or a
// list or tuple of floats only.
func floats(v literal.Value) bool {
	var all []literal.Value
	switch v := v.(type) {
	case literal.Float:
		return true
	case literal.List:
		all = v
	case literal.Tuple:
		all = v
	}
	return len(all) > 0 && !slices.ContainsFunc(all, func(item literal.Value) bool {
		_, ok := item.(literal.Float)
		return !ok
	})
}

// EvalPlus compares the values of these functions of MBPP in other ways than with ==.
var (
	// asSets: the items of the value and of the ground truth's, as sets, are equal.
	asSets = strings.Fields("similar_elements find_char_long common_in_nested_lists extract_singly larg_nnum intersection_array find_dissimilar Diff")
	// asMatches: whether there is a match counts, as a bool or as any value but None.
	asMatches = strings.Fields("check_str text_match_three text_starta_endb")
)

// test returns the golden test of a call.
func (t *Task) test(call string, given literal.Tuple, o sandbox.Outcome) string {
	want := ""
	if o.Value != nil {
		want = literal.Text(o.Value)
	}
	args := arguments(given)
	if strings.HasPrefix(t.ID, humanEval) {
		if t.EntryPoint == "find_zero" { // any root counts
			return fmt.Sprintf("coefficients = %s\nx = %s(list(coefficients))\nassert abs(sum(c * x ** i for i, c in enumerate(coefficients))) <= %g\n",
				literal.Text(given[0]), t.EntryPoint, t.Atol)
		}
		return t.equal(call, o, want)
	}
	switch {
	case t.EntryPoint == "are_equivalent": // any value counts
		return call + "\n"
	case t.EntryPoint == "sum_div":
		return fmt.Sprintf("assert %s in (%s, 0)", call, want)
	case t.EntryPoint == "surface_Area": // the height may be that of the pyramid
		return fmt.Sprintf("def other(edge, height): return round(edge ** 2 + 2 * edge * ((edge / 2) ** 2 + height ** 2) ** 0.5)\nassert %s in (%s, other%s)\n", call, want, args)
	case t.EntryPoint == "digit_distance_nums": // the shorter number may have leading zeros
		return fmt.Sprintf(`def other(a, b):
    digits = max(len(str(a)), len(str(b)))
    return sum(abs(int(x) - int(y)) for x, y in zip(str(a).zfill(digits), str(b).zfill(digits)))
assert %s in (%s, other%s)
`, call, want, args)
	case slices.Contains(asSets, t.EntryPoint):
		return fmt.Sprintf("assert set(%s) == set(%s)", call, want)
	case slices.Contains(asMatches, t.EntryPoint):
		found := literal.Text(literal.Bool(o.Value != literal.None{}))
		return fmt.Sprintf("found = %s\nassert (found if isinstance(found, bool) else found is not None) == %s\n", call, found)
	}
	return t.equal(call, o, want)
}

// equal returns the test for a value that is compared with ==.
func (t *Task) equal(call string, o sandbox.Outcome, want string) string {
	if o.Value == nil { // too large, or no literal
		p := Problem{Solution: t.Solution(), EntryPoint: t.EntryPoint}
		return p.recompute(call)
	}
	return "assert " + call + " == " + want
}
