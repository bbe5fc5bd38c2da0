package execution

import (
	"context"
	"reflect"
	"strings"
	"time"

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
	run := func(calls []string, varied bool) ([]probes.Trace, error) {
		if len(calls) == 0 {
			return nil, nil
		}
		each := max(x.config.CallTimeout, traceTimeout)
		return probes.Traces(ctx, x.pool, code, entry, calls, sandbox.Job{Each: each, Budget: max(x.config.JobTimeout, 2*each), Varied: varied})
	}
	first, err := run(calls, false)
	if err != nil {
		return nil, err
	}
	var traces []Trace
	var again []string
	for i, call := range calls {
		trace := traceText(entry, call, &first[i])
		if v := first[i].Value; v != nil && len(trace.Value) <= maxStatedBytes && literal.Equal(v, wants[i]) {
			traces, again = append(traces, trace), append(again, call)
		}
	}
	varied, err := run(again, true)
	if err != nil {
		return nil, err
	}
	var same []Trace
	for i, call := range again {
		if reflect.DeepEqual(traces[i], traceText(entry, call, &varied[i])) {
			same = append(same, traces[i])
		}
	}
	return same, nil
}

// traceTimeout bounds a call that is followed. It has few steps, so it is short, or none
// that a person would predict.
const traceTimeout = 10 * time.Second

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
