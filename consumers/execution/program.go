package execution

import (
	"context"
	"fmt"
	"strings"
	"time"

	"codea1/consumers/execution/literal"
)

// Program is Python source with the function its tests call.
type Program struct {
	Code       string
	EntryPoint string // an expression such as `solve` or `Solution().solve`; empty: not checked
}

// Kind says what became of a call.
type Kind int

// The kinds of an Outcome.
const (
	NotRun   Kind = iota // the program does not load, or the job's time was up
	Returned             // it returned a value
	Raised               // it raised an exception
	TimedOut             // it ran over the call timeout
	Crashed              // it ended its process, or left the protocol
)

// String returns the kind in words.
func (k Kind) String() string {
	return [...]string{"not run", "returned", "raised", "timed out", "crashed"}[k]
}

// Outcome is what one call did.
type Outcome struct {
	Kind Kind
	// Value is what a call that Returned returned; nil if that is no literal,
	// and then Detail says what it is. No literal equals it.
	Value  literal.Value
	Detail string
}

// Report is what running calls on a program showed.
type Report struct {
	Loads     bool
	LoadError string    // empty if it loads
	Outcomes  []Outcome // one per call
	Unstable  bool      // an earlier run of the same gave other outcomes
}

// Run evaluates each call, an expression, in the program's namespace. The
// program is loaded once, and once more after each call that hangs or crashes.
// It loads if it runs through, defines the entry point and that is callable.
//
// The error is ctx's, ErrClosed or a *SandboxError; what the program does
// never makes one.
func (p *Pool) Run(ctx context.Context, program Program, calls []string) (Report, error) {
	return p.runWithin(ctx, program, calls, p.config.JobTimeout, p.config.ValueBytes)
}

// runWithin is Run with limits of its own: on the time of all calls together and
// on the text of each value.
func (p *Pool) runWithin(ctx context.Context, program Program, calls []string, budget time.Duration, valueBytes int) (Report, error) {
	j := job{kind: jobCalls, code: program.Code, entry: program.EntryPoint, items: calls, budget: budget, valueBytes: valueBytes}
	return p.cache.run(ctx, p.executionKey(&j), func(ctx context.Context) (Report, error) {
		return p.runAfresh(ctx, j)
	})
}

func (p *Pool) runAfresh(ctx context.Context, j job) (Report, error) {
	s, err := p.run(ctx, j)
	if err != nil {
		return Report{}, err
	}
	report := Report{Loads: s.loads, LoadError: s.loadError, Outcomes: make([]Outcome, len(j.items))}
	for i := range j.items {
		switch {
		case !s.loads:
			report.Outcomes[i] = Outcome{Detail: s.loadError}
		case i >= len(s.replies):
			report.Outcomes[i] = Outcome{Detail: fmt.Sprintf("not reached within the job's %v", j.budget)}
		default:
			report.Outcomes[i] = p.outcome(s.replies[i])
		}
	}
	return report, nil
}

func (p *Pool) outcome(r reply) Outcome {
	switch r.tag {
	case tagValue:
		v, err := literal.Parse(r.text)
		if err != nil {
			return Outcome{Kind: Crashed, Detail: "it sent what is " + err.Error()}
		}
		if len(r.text) > packedBytes {
			v = literal.Pack(v)
		}
		return Outcome{Kind: Returned, Value: v}
	case tagUnliteral:
		return Outcome{Kind: Returned, Detail: clip(r.text)}
	case tagRaised, tagAssertion:
		return Outcome{Kind: Raised, Detail: clip(r.text)}
	case tagOvertime:
		return Outcome{Kind: TimedOut, Detail: fmt.Sprintf("no result after %v", p.config.CallTimeout)}
	case tagMissing:
		return Outcome{Kind: Crashed, Detail: r.text}
	}
	return Outcome{Kind: Crashed, Detail: "it sent a frame of no known kind"}
}

// packedBytes is up to where a value is kept in its parts.
const packedBytes = 4 << 10

const maxDetailBytes = 300

// clip bounds text that a candidate chose and makes it valid UTF-8. What is cut
// off is not kept.
func clip(s string) string {
	if len(s) > maxDetailBytes {
		s = strings.Clone(s[:maxDetailBytes])
	}
	return strings.ToValidUTF8(s, "?")
}
