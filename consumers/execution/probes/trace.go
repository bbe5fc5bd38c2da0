package probes

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

//go:embed trace.py
var traceProgram string

// Trace has the steps of a call of a program: statements of its function that ran.
type Trace struct {
	Value  literal.Value              // that the call returned; nil for a call without a literal value or with too many steps
	Lines  []int                      // by step, from 1
	States []map[string]literal.Tuple // by step: value and type of each variable before it; nil if the line has several statements
}

// traceBytes bounds the text of the steps of a call.
const traceBytes = 4 << 20

// Traces follows calls of a function of a program. No answer takes part. The limits of
// the job limits hold.
func Traces(ctx context.Context, pool *sandbox.Pool, code, entry string, calls []string, limits sandbox.Job) ([]Trace, error) {
	name := entry[strings.LastIndexByte(entry, '.')+1:]
	limits.Code = traceProgram + "\nload(" + literal.Text(literal.Str(code)) + ", " + literal.Text(literal.Str(name)) + ")\n"
	limits.Entry, limits.ValueBytes = "trace", traceBytes
	for _, call := range calls {
		limits.Items = append(limits.Items, "trace("+literal.Text(literal.Str(call))+")")
	}
	report, err := pool.RunCalls(ctx, limits)
	if err != nil {
		return nil, err
	}
	if !report.Loads {
		return nil, fmt.Errorf("tracing: %s", report.LoadError)
	}
	traces := make([]Trace, len(calls))
	for i, o := range report.Outcomes {
		if o.Value == nil {
			continue
		}
		value, err := literal.Parse(literal.Text(o.Value)) // a large one is packed
		if pair, ok := value.(literal.Tuple); err == nil && ok && len(pair) == 2 {
			if steps, ok := pair[1].(literal.List); ok {
				traces[i] = readTrace(pair[0], steps)
			}
		}
	}
	return traces, nil
}

// readTrace reads the trace of a call from trace.py. A value without a literal that equals
// itself is left out.
func readTrace(value literal.Value, steps literal.List) Trace {
	t := Trace{Value: value}
	for _, step := range steps {
		pair, ok := step.(literal.Tuple)
		if !ok || len(pair) != 2 {
			return Trace{}
		}
		var line int
		if _, err := fmt.Sscan(literal.Text(pair[0]), &line); err != nil {
			return Trace{}
		}
		variables, known := pair[1].(literal.Dict)
		var state map[string]literal.Tuple
		if known {
			state = make(map[string]literal.Tuple, len(variables))
		}
		for _, v := range variables {
			name, _ := v.Key.(literal.Str)
			texts, _ := v.Value.(literal.Tuple)
			if len(texts) != 2 {
				continue
			}
			text, _ := texts[0].(literal.Str)
			if value, err := literal.Parse(string(text)); err == nil && literal.SelfEqual(value) {
				state[string(name)] = literal.Tuple{value, texts[1]}
			}
		}
		t.Lines, t.States = append(t.Lines, line), append(t.States, state)
	}
	return t
}
