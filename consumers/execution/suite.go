package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events/fenced"
)

// SuiteText returns the test code in a Test LLM's response: all its fenced
// blocks, or the whole text if there are none.
func SuiteText(response string) string {
	blocks := fenced.Blocks(response)
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
	Place      string `json:"place"`      // why the stated value may depend on addresses

	Function  string     `json:"function"`  // called with the arguments
	Arguments []argument `json:"arguments"` // where one is no literal

	stated literal.Value // the stated value
}

// argument is an argument of a call.
type argument struct {
	Name       string `json:"name"`       // of the parameter; empty: positional; allArguments
	Text       string `json:"text"`       // literal text; empty: Expression has to be computed
	Expression string `json:"expression"` //
	Renamed    string `json:"renamed"`    // the expression with other names for its variables; empty: it has none
	Place      string `json:"place"`      // why its value may depend on addresses
}

// allArguments is the name of an argument that holds a tuple and a dict of all
// arguments.
const allArguments = "*"

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
	computed, doubtful := newCalls(), newCalls()
	ask := func(expression, place string) {
		if expression != "" {
			computed.add(expression)
			if place != "" {
				doubtful.add(expression)
			}
		}
	}
	inTurn(suites, func(st *statement) {
		ask(st.Expression, st.Place)
		for _, a := range st.Arguments {
			ask(a.Expression, a.Place)
		}
	})
	if len(computed.list) == 0 {
		return nil
	}
	usual, err := x.pool.RunUncached(ctx, sandbox.Job{Code: computePrelude, Items: computed.list, Budget: budget, ValueBytes: limit})
	if err != nil {
		return err
	}
	var varied sandbox.Report
	if len(doubtful.list) > 0 {
		listBytes := sandbox.VariedOrders * (limit + 16)
		varied, err = x.pool.RunUncached(ctx, sandbox.Job{Code: computePrelude, Items: doubtful.list, Budget: budget, ValueBytes: listBytes, Varied: true})
		if err != nil {
			return err
		}
	}
	outcome := func(expression string, text func(literal.Value) string) sandbox.Outcome {
		o := usual.Outcomes[computed.index[expression]]
		if i, ok := doubtful.index[expression]; ok {
			return steady(o, varied.Outcomes[i], text)
		}
		return o
	}
	inTurn(suites, func(st *statement) {
		if st.Expression != "" {
			st.setStated(outcome(st.Expression, literal.Key)) // only compared
		}
		if st.Reason == "" && len(st.Arguments) > 0 {
			// A program sees the order of a dict.
			st.setArguments(func(expression string) sandbox.Outcome { return outcome(expression, literal.Text) })
		}
	})
	return nil
}

// steady returns an expression's outcome, or a failure if its value differs in a
// varied process or with its sets in another order.
func steady(usual, varied sandbox.Outcome, text func(literal.Value) string) sandbox.Outcome {
	if usual.Value == nil {
		return usual
	}
	if varied.Kind != sandbox.Returned {
		return varied
	}
	var list literal.List
	if varied.Value != nil {
		v, _ := literal.Parse(literal.Text(varied.Value)) // a long one is packed
		list, _ = v.(literal.List)
	}
	differs := func(v literal.Value) bool { return text(v) != text(usual.Value) }
	if len(list) == 0 || slices.ContainsFunc(list, differs) {
		return sandbox.Outcome{Kind: sandbox.Raised, Detail: "the value depends on " + unsteady}
	}
	return usual
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

// setArguments writes the call with the values of its arguments. An argument without a
// short literal text, such as a function, stays an expression.
func (st *statement) setArguments(outcome func(expression string) sandbox.Outcome) {
	arguments, short, place := []argument(nil), true, ""
	for _, a := range st.Arguments {
		if a.Expression != "" {
			o := outcome(a.Expression)
			if o.Kind != sandbox.Returned {
				st.Reason = "the arguments cannot be computed: " + o.Detail
				return
			}
			all, ok := a.expand(o.Value)
			if !ok {
				place, short = cmp.Or(place, a.Place), short && a.Name != allArguments
			}
			arguments = append(arguments, all...)
			continue
		}
		arguments = append(arguments, a)
	}
	if call := st.Function + "(" + joinArguments(arguments) + ")"; short && len(call) <= maxComputedBytes {
		st.Call = call
	} else {
		for _, a := range st.Arguments {
			place = cmp.Or(place, a.Place)
		}
	}
	st.Arguments, st.Reason = arguments, place
}

// expand returns the argument with the literal text of its value, or all arguments that
// the value stands for. It reports whether the value has a literal text.
func (a argument) expand(value literal.Value) ([]argument, bool) {
	if a.Name != allArguments {
		if value != nil {
			a.Text = literal.Text(value)
		}
		return []argument{a}, value != nil
	}
	pair, _ := value.(literal.Tuple)
	if len(pair) != 2 {
		return []argument{a}, false
	}
	var all []argument
	positional, _ := pair[0].(literal.Tuple)
	named, _ := pair[1].(literal.Dict)
	for _, v := range positional {
		all = append(all, argument{Text: literal.Text(v), Place: a.Place})
	}
	for _, entry := range named {
		name, ok := entry.Key.(literal.Str)
		if !ok || !sandbox.IsArgumentName(string(name)) {
			return []argument{a}, false
		}
		all = append(all, argument{Name: string(name), Text: literal.Text(entry.Value), Place: a.Place})
	}
	return all, true
}

func joinArguments(arguments []argument) string {
	texts := make([]string, len(arguments))
	for i, a := range arguments {
		texts[i] = cmp.Or(a.Text, a.Expression)
		if a.Name != "" {
			texts[i] = a.Name + "=" + texts[i]
		}
	}
	return strings.Join(texts, ", ")
}

// spelling returns the arguments of a call of the entry point in a spelling that equal
// arguments share. It reports whether each is known by itself.
func (st *statement) spelling(entry string) (call []given, ok bool) {
	if len(st.Arguments) == 0 {
		arguments, err := literal.ParseArguments(strings.TrimPrefix(st.Call, entry))
		for _, a := range arguments {
			call = append(call, given{a.Name, literal.Text(a.Value)})
		}
		return call, err == nil
	}
	for _, a := range st.Arguments {
		text := cmp.Or(a.Renamed, a.Expression)
		if v, err := literal.Parse(a.Text); err == nil {
			text = literal.Text(v)
		}
		call = append(call, given{a.Name, text})
		ok = a.Name != allArguments
	}
	return call, ok
}

// isLiteral reports whether each argument has a literal text and no set.
func (st *statement) isLiteral() bool {
	return !slices.ContainsFunc(st.Arguments, func(a argument) bool { return a.Text == "" || a.Place != "" })
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
