package execution

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// SuiteText returns the test code in a Test LLM's response: all its fenced
// blocks, or the whole text if there are none.
func SuiteText(response string) string {
	blocks := events.FencedBlocks(response)
	if len(blocks) == 0 {
		return response
	}
	var text strings.Builder
	for _, b := range blocks {
		text.WriteString(b.Text)
		text.WriteByte('\n')
	}
	return text.String()
}

// statement is one statement of a suite, as harness/suites.py writes it. It is a
// test if Reason is empty.
type statement struct {
	Source     string `json:"source"`     // as written, cut at a limit
	Reason     string `json:"reason"`     // why it is not a test
	Call       string `json:"call"`       // normalised by Python's ast
	StatedText string `json:"stated"`     // literal text of the stated value
	Expression string `json:"expression"` // of the stated value, where that is no literal
	Arguments  string `json:"arguments"`  // expression of a tuple and a dict, where those are no literals
	Function   string `json:"function"`   // called with the arguments
	Bound      string `json:"bound"`      // why a program's process must not compute arguments that have no literal text

	stated literal.Value // the stated value
}

// maxStatedBytes bounds the literal text of a value that goes into an event: a
// stated or a true value.
const maxStatedBytes = 4 << 10

// maxComputedBytes bounds the text of a call with computed arguments: a short
// expression may have a long value, and the text goes into an event.
const maxComputedBytes = 1 << 10

// computePrelude defines the two names that a computed expression may use.
const computePrelude = "from math import inf, nan\n"

// parseSuites reads each text with Python's ast, in children that run no program.
// TESTS.md says which statements are tests: `assert call == value` with a call of
// the entry point, where arguments and value are literals, or expressions of
// literals and pure built-in functions, which are computed apart from any program.
// trusted lifts the limits on the call's arguments. budget bounds each child that
// parses, and also the computing for all texts together.
func (x *Executor) parseSuites(ctx context.Context, entry string, texts []string, trusted bool, budget time.Duration) ([][]statement, error) {
	limit := maxStatedBytes
	if trusted {
		limit = x.config.ValueBytes
	}
	suites := make([][]statement, len(texts))
	read := func(i int, r sandbox.Reply) { suites[i] = readStatements(texts[i], r) }
	if err := x.readTexts(ctx, sandbox.Job{Kind: sandbox.JobSuites, Entry: entry, Trusted: trusted, ValueBytes: limit, Budget: budget}, texts, read); err != nil {
		return nil, err
	}
	return suites, x.compute(ctx, suites, limit, budget)
}

// compute fills in the stated values and arguments that are no literals. For a
// program under test it is as if the suite had literals there: a program with a
// function `sum` of its own gets the same arguments as all others.
func (x *Executor) compute(ctx context.Context, suites [][]statement, limit int, budget time.Duration) error {
	computed := newCalls()
	inTurn(suites, func(st *statement) {
		for _, expression := range []string{st.Expression, st.Arguments} {
			if expression != "" {
				computed.add(expression)
			}
		}
	})
	if len(computed.list) == 0 {
		return nil
	}
	report, err := x.pool.RunUncached(ctx, sandbox.Program{Code: computePrelude}, computed.list, budget, limit)
	if err != nil {
		return err
	}
	inTurn(suites, func(st *statement) {
		if st.Expression != "" {
			st.setStated(report.Outcomes[computed.index[st.Expression]])
		}
		if st.Arguments != "" && st.Reason == "" {
			st.setArguments(report.Outcomes[computed.index[st.Arguments]])
		}
	})
	return nil
}

// inTurn visits the first item of each suite, then the second of each, and so on:
// a suite with slow tests does not take the time of the others.
func inTurn[T any](suites [][]T, visit func(*T)) {
	for i, more := 0, true; more; i++ {
		more = false
		for _, suite := range suites {
			if i < len(suite) {
				visit(&suite[i])
				more = true
			}
		}
	}
}

func (st *statement) setStated(o sandbox.Outcome) {
	if st.stated = o.Value; o.Value == nil {
		st.Reason = "the stated value cannot be computed: " + o.Detail
	}
}

// setArguments writes the call with the values of its arguments. Arguments without
// a short literal text, such as a function, stay an expression.
func (st *statement) setArguments(o sandbox.Outcome) {
	if o.Kind != sandbox.Returned {
		st.Reason = "the arguments cannot be computed: " + o.Detail
		return
	}
	call, ok := callText(st.Function, o.Value)
	switch {
	case ok && len(call) <= maxComputedBytes:
		st.Call = call
	case st.Bound != "":
		st.Reason = st.Bound
	}
}

// callText writes a call with the arguments in a tuple and a dict.
func callText(function string, arguments literal.Value) (string, bool) {
	pair, ok := arguments.(literal.Tuple)
	if !ok || len(pair) != 2 {
		return "", false
	}
	positional, ok := pair[0].(literal.Tuple)
	named, isDict := pair[1].(literal.Dict)
	if !ok || !isDict {
		return "", false
	}
	var texts []string
	for _, v := range positional {
		texts = append(texts, literal.Text(v))
	}
	for _, entry := range named {
		name, ok := entry.Key.(literal.Str)
		if !ok || !sandbox.IsArgumentName(string(name)) {
			return "", false
		}
		texts = append(texts, string(name)+"="+literal.Text(entry.Value))
	}
	return function + "(" + strings.Join(texts, ", ") + ")", true
}

// textsPerChild is the number of texts that justifies a child of its own.
const textsPerChild = 16

// readTexts does a job on texts, in several children at once where there are many
// texts. It calls read with the reply for each, from several goroutines; the reply
// is empty where time ran out.
func (x *Executor) readTexts(ctx context.Context, j sandbox.Job, texts []string, read func(i int, r sandbox.Reply)) error {
	parts := min(x.config.Workers, (len(texts)+textsPerChild-1)/textsPerChild)
	reading, ctx := errgroup.WithContext(ctx)
	for part := range parts {
		from, to := part*len(texts)/parts, (part+1)*len(texts)/parts
		reading.Go(func() error {
			own := j
			own.Items = texts[from:to]
			s, err := x.pool.Do(ctx, own)
			if err != nil {
				return err
			}
			replies := append(s.Replies, make([]sandbox.Reply, to-from-len(s.Replies))...)
			for i, r := range replies {
				read(from+i, r)
			}
			return nil
		})
	}
	return reading.Wait()
}

// readStatements reads the parser's reply for a text.
func readStatements(text string, r sandbox.Reply) []statement {
	if r.Tag != sandbox.TagValue {
		return []statement{{Source: sandbox.Clip(text), Reason: "the text could not be parsed within the limits"}}
	}
	var statements []statement
	if err := json.Unmarshal([]byte(r.Text), &statements); err != nil {
		return []statement{{Source: sandbox.Clip(text), Reason: fmt.Sprintf("the parser's answer is no JSON: %v", err)}}
	}
	for i := range statements {
		st := &statements[i]
		if st.Reason == "" && st.Expression == "" {
			var err error
			if st.stated, err = literal.Parse(st.StatedText); err != nil {
				st.Reason = "the stated value is " + err.Error()
			}
		}
	}
	return statements
}

// calls is a list of distinct expressions in the order of their first use.
type calls struct {
	list  []string
	index map[string]int
}

func newCalls() *calls { return &calls{index: map[string]int{}} }

func (c *calls) add(call string) {
	if _, known := c.index[call]; !known {
		c.index[call] = len(c.list)
		c.list = append(c.list, call)
	}
}
