package evalplus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// expected has the calls of a task and their values on the ground truth.
type expected struct {
	inputs   []literal.Tuple
	calls    []string
	outcomes []sandbox.Outcome // of the calls; all Returned
	load     time.Duration     // of the ground truth
	atol     float64
}

// expect runs the ground truth on the inputs.
func (t *Task) expect(ctx context.Context, x *execution.Executor) (*expected, error) {
	e := &expected{inputs: t.inputs(), atol: t.Atol}
	for _, given := range e.inputs {
		e.calls = append(e.calls, t.EntryPoint+arguments(given))
	}
	truth := sandbox.Program{Code: t.Solution(), EntryPoint: t.EntryPoint}
	for len(e.outcomes) < len(e.calls) { // a slow ground truth needs the time of several jobs
		report, err := x.RunTruth(ctx, truth, e.calls[len(e.outcomes):])
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
		e.outcomes, e.load = append(e.outcomes, report.Outcomes[:max(reached, 1)]...), max(e.load, report.LoadTook)
	}
	for i := range e.outcomes {
		o := &e.outcomes[i]
		if o.Kind != sandbox.Returned {
			return nil, fmt.Errorf("task %s: the ground truth %s on input %d: %s", t.ID, o.Kind, i, o.Detail)
		}
		if e.atol == 0 && floats(o.Value) {
			e.atol = floatAtol
		}
	}
	return e, nil
}

// plan runs the ground truth on the inputs and plans one golden test per input.
func (t *Task) plan(ctx context.Context, x *execution.Executor) (*execution.GoldenPlan, error) {
	e, err := t.expect(ctx, x)
	if err != nil {
		return nil, err
	}
	tests := make([]execution.KnownTest, len(e.calls))
	for i, call := range e.calls {
		known := &tests[i]
		switch known.Source = t.test(call, e.inputs[i], e.outcomes[i]); {
		case t.anyRoot():
			known.Call, known.Accepts = call, rootOf(e.inputs[i], t.Atol)
		case known.Source == t.equal(call, e.outcomes[i]):
			known.Call = call
		}
		known.Truth = e.outcomes[i]
	}
	return x.PlanKnown(ctx, sandbox.Program{Code: t.Solution(), EntryPoint: t.EntryPoint}, e.load, tests, e.atol)
}

// Problem runs the ground truth on the inputs and returns the problem with one
// golden test per input.
func (t *Task) Problem(ctx context.Context, x *execution.Executor) (*Problem, error) {
	e, err := t.expect(ctx, x)
	if err != nil {
		return nil, err
	}
	p := &Problem{
		ID: t.ID, Source: "evalplus", Question: t.Prompt, EntryPoint: t.EntryPoint, Solution: t.Solution(),
		Tests: make([]string, len(e.calls)), BaseTests: t.BaseTests(), Atol: e.atol,
	}
	bytes := 0
	for i, call := range e.calls {
		p.Tests[i] = t.test(call, e.inputs[i], e.outcomes[i])
		bytes += len(p.Tests[i])
	}
	bytes -= p.computeLargest(e.calls, bytes)
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
		if t.anyRoot() {
			return fmt.Sprintf("coefficients = %s\nx = %s(list(coefficients))\nassert abs(sum(c * x ** i for i, c in enumerate(coefficients))) <= %g\n",
				literal.Text(given[0]), t.EntryPoint, t.Atol)
		}
		return t.equal(call, o)
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
	return t.equal(call, o)
}

// equal returns the test for a value that is compared with ==.
func (t *Task) equal(call string, o sandbox.Outcome) string {
	if o.Value == nil { // too large, or no literal
		p := Problem{Solution: t.Solution(), EntryPoint: t.EntryPoint}
		return p.recompute(call)
	}
	return "assert " + call + " == " + literal.Text(o.Value)
}
