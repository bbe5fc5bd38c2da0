package sandbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"codea1/consumers/execution/literal"
)

// Program is Python source with the function that its tests call.
type Program struct {
	Code       string
	EntryPoint string // an expression such as `solve` or `Solution().solve`; empty: not checked
}

// Kind says how a call ended.
type Kind int

// The kinds of an Outcome.
const (
	NotRun   Kind = iota // the program does not load, or the job's time was up
	Returned             // it returned a value
	Raised               // it raised an exception
	TimedOut             // it ran over the call timeout
	Crashed              // it ended its process, or broke the protocol
)

// String returns the kind as words.
func (k Kind) String() string {
	return [...]string{"not run", "returned", "raised", "timed out", "crashed"}[k]
}

// Outcome is the result of one call.
type Outcome struct {
	Kind Kind
	// Value is the value of a call that Returned. It is nil if no literal
	// expresses the value; then Detail describes it, and no literal equals it.
	Value  literal.Value
	Detail string
	Took   time.Duration // 0 if it is not known
}

// Digest returns a text that only calls that Returned the same value share: its literal
// text, or the digest of a larger value. It returns "" if there is neither.
func (o *Outcome) Digest() string {
	switch {
	case o.Kind != Returned:
		return ""
	case o.Value != nil:
		return literal.Text(o.Value)
	case strings.HasPrefix(o.Detail, digested):
		return o.Detail
	}
	return ""
}

// Report holds the results of running calls on a program.
type Report struct {
	Loads     bool
	LoadError string // empty if it loads
	LoadTook  time.Duration
	Outcomes  []Outcome // one per call
	Unstable  bool      // an earlier run had other outcomes
}

// Run evaluates each call, an expression, in the program's namespace. The
// program is loaded once, and once more after each call that hangs or crashes.
// It loads if it runs through, defines the entry point and that is callable.
//
// The error is ctx's, ErrClosed or a *Error. The program itself never causes
// one.
func (p *Pool) Run(ctx context.Context, program Program, calls []string) (Report, error) {
	return p.RunCalls(ctx, Job{Code: program.Code, Entry: program.EntryPoint, Items: calls})
}

// RunCalls is Run with the limits of a job.
func (p *Pool) RunCalls(ctx context.Context, j Job) (Report, error) {
	j = p.complete(j)
	return p.cache.run(ctx, p.executionKey(&j), func(ctx context.Context) (Report, error) {
		return p.RunUncached(ctx, j)
	})
}

// RunUncached is RunCalls without the cache.
func (p *Pool) RunUncached(ctx context.Context, j Job) (Report, error) {
	j.Kind = JobCalls
	j = p.complete(j)
	s, err := p.Do(ctx, j)
	if err != nil {
		return Report{}, err
	}
	report := Report{Loads: s.Loads, LoadError: s.LoadError, LoadTook: s.LoadTook, Outcomes: make([]Outcome, len(j.Items))}
	for i := range j.Items {
		switch {
		case !s.Loads:
			report.Outcomes[i] = Outcome{Detail: s.LoadError}
		case i >= len(s.Replies):
			report.Outcomes[i] = Outcome{Detail: fmt.Sprintf("not reached within the job's %v", j.Budget)}
		default:
			report.Outcomes[i] = p.Outcome(s.Replies[i])
			report.Outcomes[i].Took = s.Replies[i].Took
		}
	}
	return report, nil
}

// Outcome reads the reply to a call.
func (p *Pool) Outcome(r Reply) Outcome {
	switch r.Tag {
	case TagValue:
		v, err := literal.Parse(r.Text)
		if err != nil {
			return Outcome{Kind: Crashed, Detail: "it sent text that is " + err.Error()}
		}
		if len(r.Text) > packedBytes {
			v = literal.Pack(v)
		}
		return Outcome{Kind: Returned, Value: v}
	case TagUnliteral:
		return Outcome{Kind: Returned, Detail: Clip(r.Text)}
	case TagRaised, TagAssertion:
		return Outcome{Kind: Raised, Detail: Clip(r.Text)}
	case TagOvertime:
		return Outcome{Kind: TimedOut, Detail: r.Text}
	case TagMissing:
		return Outcome{Kind: Crashed, Detail: r.Text}
	}
	return Outcome{Kind: Crashed, Detail: "it sent a frame of an unknown kind"}
}

// packedBytes is the longest text of a value that is kept unpacked.
const packedBytes = 4 << 10

const maxDetailBytes = 300

// Clip bounds text that a candidate chose and makes it valid UTF-8. The rest is
// not kept in memory.
func Clip(s string) string {
	if len(s) > maxDetailBytes {
		s = strings.Clone(s[:maxDetailBytes])
	}
	return strings.ToValidUTF8(s, "?")
}
