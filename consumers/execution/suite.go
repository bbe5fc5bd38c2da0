package execution

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/literal"
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

// statement is one statement of a suite. It is a test if reason is empty.
type statement struct {
	source     string        // as written, cut at a limit
	reason     string        // why it is no test
	call       string        // normalised by Python's ast
	stated     literal.Value // what the test says the call returns
	expression string        // of what it says, where that is no literal
}

// maxStatedBytes bounds the literal text of a value that ends up in an event:
// what a suite states and what the ground truth returns.
const maxStatedBytes = 4 << 10

// statedPrelude gives a stated answer the two names that are no literals.
const statedPrelude = "from math import inf, nan\n"

// parseSuites reads each text with Python's ast, in children that run no program.
// What counts as a test is in TESTS.md: `assert call == answer` where the call is
// the entry point's and the answer a literal, or an expression of literals and
// pure built-in functions, which is computed apart from any program. trusted lifts
// the limits on the call's arguments. budget bounds each child that parses, and
// again the computing of all texts together.
func (p *Pool) parseSuites(ctx context.Context, entry string, texts []string, trusted bool, budget time.Duration) ([][]statement, error) {
	limit := maxStatedBytes
	if trusted {
		limit = p.config.ValueBytes
	}
	suites := make([][]statement, len(texts))
	read := func(i int, r reply) { suites[i] = readStatements(texts[i], r) }
	if err := p.readTexts(ctx, job{kind: jobSuites, entry: entry, trusted: trusted, valueBytes: limit, budget: budget}, texts, read); err != nil {
		return nil, err
	}
	computed := newCalls()
	var open []*statement // those whose stated answer is still to be computed
	for i := range suites {
		for j := range suites[i] {
			if st := &suites[i][j]; st.expression != "" {
				computed.add(st.expression)
				open = append(open, st)
			}
		}
	}
	if len(open) == 0 {
		return suites, nil
	}
	report, err := p.runWithin(ctx, Program{Code: statedPrelude}, computed.list, budget)
	if err != nil {
		return nil, err
	}
	for _, st := range open {
		outcome := report.Outcomes[computed.index[st.expression]]
		st.stated = outcome.Value
		if st.stated == nil {
			st.reason = "the stated answer cannot be computed: " + outcome.Detail
		}
	}
	return suites, nil
}

// record is what harness/suites.py says of one statement.
type record struct {
	Source     string `json:"source"`
	Reason     string `json:"reason"`
	Call       string `json:"call"`
	Stated     string `json:"stated"`
	Expression string `json:"expression"`
}

// textsAtATime is how many texts are worth a child of their own.
const textsAtATime = 16

// readTexts does a job on texts, several at once where there are many: they have
// nothing to do with each other. It hands the reply for each to read, an empty one
// where time ran out, several at once, too.
func (p *Pool) readTexts(ctx context.Context, j job, texts []string, read func(i int, r reply)) error {
	parts := min(p.config.Workers, (len(texts)+textsAtATime-1)/textsAtATime)
	reading, ctx := errgroup.WithContext(ctx)
	for part := range parts {
		from, to := part*len(texts)/parts, (part+1)*len(texts)/parts
		reading.Go(func() error {
			own := j
			own.items = texts[from:to]
			s, err := p.run(ctx, own)
			if err != nil {
				return err
			}
			replies := append(s.replies, make([]reply, to-from-len(s.replies))...)
			for i, r := range replies {
				read(from+i, r)
			}
			return nil
		})
	}
	return reading.Wait()
}

// readStatements reads the parser's reply for a text.
func readStatements(text string, r reply) []statement {
	if r.tag != tagValue {
		return []statement{{source: clip(text), reason: "the text could not be parsed within the limits"}}
	}
	var records []record
	if err := json.Unmarshal([]byte(r.text), &records); err != nil {
		return []statement{{source: clip(text), reason: fmt.Sprintf("the parser's answer is no JSON: %v", err)}}
	}
	statements := make([]statement, len(records))
	for i, r := range records {
		st := statement{source: r.Source, reason: r.Reason, call: r.Call, expression: r.Expression}
		if r.Reason == "" && r.Expression == "" {
			var err error
			if st.stated, err = literal.Parse(r.Stated); err != nil {
				st.reason = "the stated answer is " + err.Error()
			}
		}
		statements[i] = st
	}
	return statements
}

// calls collects expressions, each once, in the order they first come.
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
