package published

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

// cruxEval is one direction of a row of CRUXEval: predict the output of f(input), or an
// input with the output.
//
// An output answer is an expression. It is right if `assert f(input) == answer` holds.
// An input answer is a call of f, or the arguments of one. It is right if
// `assert f(answer) == output` holds. An answer is computed without the row's program,
// so it is an expression of literals and pure built-in functions. CRUXEval itself
// refuses an output answer only for the text f(input), and accepts an input answer that
// has the output in place of a call.
type cruxEval struct {
	name          string
	code          string
	input, output string
	predictsInput bool
}

// cruxEntry is the function of every row.
const cruxEntry = "f"

func readCruxEval(line []byte) ([]Task, error) {
	var row struct {
		ID     string `json:"id"`
		Code   string `json:"code"`
		Input  string `json:"input"` // may be empty: no arguments
		Output string `json:"output"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, fmt.Errorf("CRUXEval: %w", err)
	}
	if err := missing(row.ID, "id", row.ID, "code", row.Code, "output", row.Output); err != nil {
		return nil, fmt.Errorf("CRUXEval: %w", err)
	}
	of := func(direction string) *cruxEval {
		return &cruxEval{row.ID + "/" + direction, row.Code, row.Input, row.Output, direction == "input"}
	}
	return []Task{of("input"), of("output")}, nil
}

func (t *cruxEval) ID() string        { return t.name }
func (t *cruxEval) modules() []string { return nil }

func (t *cruxEval) Truth() string {
	if t.predictsInput {
		return cruxEntry + "(" + t.input + ")"
	}
	return t.output
}

func (t *cruxEval) Program(text string, _ bool) string { return text }

// grade reads row and answer apart. In a common text, an answer could make a comment of
// the rest, or compare by itself.
func (t *cruxEval) grade(ctx context.Context, g *Grader, answer string) (Verdict, error) {
	call, value, ok, err := g.x.ReadAssertion(ctx, cruxEntry, fmt.Sprintf("assert f(%s) == (%s\n)", t.input, t.output))
	if err != nil {
		return Verdict{}, err
	}
	if !ok {
		return Verdict{}, fmt.Errorf("problem %s: input or output is no expression", t.name)
	}
	if !t.predictsInput {
		_, stated, ok, err := g.x.ReadAssertion(ctx, cruxEntry, "assert f(0) == ("+answer+"\n)")
		if err != nil || !ok {
			return Verdict{Reason: "the answer is no expression of literals"}, err
		}
		got, err := t.call(ctx, g, call)
		v := Verdict{Behaviour: literal.Key(stated), Passed: got.Value != nil && literal.Equal(got.Value, stated)}
		if !v.Passed {
			v.Reason = "f(input) has another value"
		}
		return v, err
	}
	if text := strings.TrimSpace(answer); !strings.HasPrefix(text, cruxEntry+"(") {
		answer = cruxEntry + "(" + answer + "\n)"
	}
	given, _, ok, err := g.x.ReadAssertion(ctx, cruxEntry, "assert ("+answer+"\n) == 0")
	if err != nil || !ok {
		return Verdict{Reason: "the answer is no call of f with expressions of literals"}, err
	}
	got, err := t.call(ctx, g, given)
	v := Verdict{Behaviour: given, Reason: unreached(got)}
	if v.Reason == "" {
		if v.Passed = literal.Equal(got.Value, value); !v.Passed {
			v.Reason = "f(answer) has another value than output"
		}
	}
	return v, err
}

// call calls the function of the row.
func (t *cruxEval) call(ctx context.Context, g *Grader, call string) (sandbox.Outcome, error) {
	report, err := g.pool.Run(ctx, sandbox.Program{Code: t.code, EntryPoint: cruxEntry}, []string{call})
	if err != nil {
		return sandbox.Outcome{}, err
	}
	return report.Outcomes[0], nil
}
