package execution

import (
	"context"
	"reflect"
	"strings"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/probes"
	"codea1/consumers/execution/sandbox"
)

// Trace is a golden test's call on the ground truth, as Python texts.
type Trace struct {
	Call      string
	Arguments string              // as a tuple; empty for a call with a named argument
	Value     string              // that the call returned
	Lines     []int               // by step: the line, from 1, of the next statement of the entry point
	States    []map[string]string // by step: the value and the type of each variable, as a tuple; nil if unknown
}

// Trace follows the ground truth on the calls of golden tests of the form `assert CALL ==
// LITERAL`, at most limit of them. It leaves out a test that the ground truth does not pass
// or that has too many steps, and steps that depend on addresses, the hash seed, the time
// or chance. The tracer is in the process of the ground truth only.
func (x *Executor) Trace(ctx context.Context, code, entry string, tests []string, limit int) ([]Trace, error) {
	parsed, err := x.parseSuites(ctx, entry, tests[:min(limit, len(tests))], true, x.config.JobTimeout)
	if err != nil {
		return nil, err
	}
	var calls []string
	var wants []literal.Value
	for _, statements := range parsed {
		if len(statements) == 1 && statements[0].Reason == "" && statements[0].isLiteral() && literal.SelfEqual(statements[0].stated) {
			calls, wants = append(calls, statements[0].Call), append(wants, statements[0].stated)
		}
	}
	if len(calls) == 0 {
		return nil, nil
	}
	own := x.allowTruth()
	var runs [2][]probes.Trace
	for i := range runs {
		if runs[i], err = probes.Traces(ctx, x.pool, code, entry, calls, sandbox.Job{Each: own.each, Budget: own.budget, Varied: i > 0}); err != nil {
			return nil, err
		}
	}
	var traces []Trace
	for i, call := range calls {
		first, varied := traceText(entry, call, &runs[0][i]), traceText(entry, call, &runs[1][i])
		if v := runs[0][i].Value; v != nil && len(first.Value) <= maxStatedBytes && literal.Equal(v, wants[i]) && reflect.DeepEqual(first, varied) {
			traces = append(traces, first)
		}
	}
	return traces, nil
}

func traceText(entry, call string, from *probes.Trace) Trace {
	t := Trace{Call: call, Lines: from.Lines}
	if from.Value == nil {
		return t
	}
	t.Value = literal.Text(from.Value)
	if arguments, err := literal.ParseArguments(strings.TrimPrefix(call, entry)); err == nil {
		var tuple literal.Tuple
		for _, a := range arguments {
			tuple = append(tuple, a.Value)
			if a.Name != "" {
				tuple = nil
				break
			}
		}
		if tuple != nil {
			t.Arguments = literal.Text(tuple)
		}
	}
	for _, state := range from.States {
		var texts map[string]string
		if state != nil {
			texts = make(map[string]string, len(state))
		}
		for name, pair := range state {
			texts[name] = literal.Text(pair)
		}
		t.States = append(t.States, texts)
	}
	return t
}
