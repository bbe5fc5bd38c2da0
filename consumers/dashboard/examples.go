package dashboard

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"codea1/events"
)

// Bounds of the examples.
const (
	maxExamples     = 5
	maxBufferBytes  = 32 << 20 // events of groups that are not rewarded yet
	maxExampleBytes = 4 << 10  // of each text of an example
	maxWholeBytes   = 1 << 19  // of all texts of the group of an example
)

// Example is an answer that fails a new test, and the test, which is right as
// stated.
type Example struct {
	Step     int
	Group    string
	Problem  string // its ID
	Question string
	Code     string // the answer
	Test     string // the statement of the Test LLM
	Call     string
	Expected string // the ground truth's value, a Python literal
	Got      string // the answer's value or exception
	Passed   int    // new tests that the answer passes
	Ran      int    // new tests that ran on it
}

// examples selects examples from all parts of a run. The run is divided into
// maxExamples spans of steps. The example of a span is the answer that passes the
// largest share of its new tests, because a test that such an answer fails is the
// hardest to find.
//
// The texts of an example are in the two largest events of a group. These are
// buffered without decoding until the group's rewards show whether it has a
// better example.
type examples struct {
	steps  int // of the run
	buffer map[string][]events.Message
	order  []string // groups in the buffer, oldest first
	bytes  int      // in the buffer
	best   map[int]spanExample
}

// spanExample is the example of a span.
type spanExample struct {
	Example
	share float64 // of new tests passed
	whole *Group
}

func newExamples() examples {
	return examples{buffer: map[string][]events.Message{}, best: map[int]spanExample{}}
}

// all returns the examples by step.
func (x *examples) all() []Example {
	var out []Example
	for _, c := range x.best {
		out = append(out, c.Example)
	}
	slices.SortFunc(out, func(a, b Example) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), strings.Compare(a.Group, b.Group))
	})
	return out
}

// plan sets the number of steps of the run, which a resumed run may change.
func (x *examples) plan(steps int) {
	x.steps = steps
	before := x.best
	x.best = map[int]spanExample{}
	for _, span := range slices.Sorted(maps.Keys(before)) {
		x.offer(before[span])
	}
}

func (x *examples) span(step int) int {
	if x.steps <= 0 {
		return 0
	}
	return min(max(0, step-1)*maxExamples/x.steps, maxExamples-1)
}

func (x *examples) offer(e spanExample) {
	if have, ok := x.best[x.span(e.Step)]; !ok || e.share > have.share {
		x.best[x.span(e.Step)] = e
	}
}

// add buffers an event of a training group until the group ends.
func (x *examples) add(m *events.Message) {
	if m.Type != events.TypeTestsSampled && m.Type != events.TypeCodeExecuted || strings.HasPrefix(m.Group, "e-") {
		return
	}
	for x.bytes+len(m.Data) > maxBufferBytes && len(x.order) > 0 {
		x.release(x.order[0])
	}
	if x.bytes+len(m.Data) > maxBufferBytes {
		return
	}
	if _, ok := x.buffer[m.Group]; !ok {
		x.order = append(x.order, m.Group)
	}
	x.buffer[m.Group] = append(x.buffer[m.Group], *m)
	x.bytes += len(m.Data)
}

// release removes a group from the buffer and returns its events.
func (x *examples) release(group string) []events.Message {
	buffered, ok := x.buffer[group]
	if !ok {
		return nil
	}
	for i := range buffered {
		x.bytes -= len(buffered[i].Data)
	}
	delete(x.buffer, group)
	x.order = slices.DeleteFunc(x.order, func(g string) bool { return g == group })
	return buffered
}

// rewarded looks for an example in a group that was rewarded.
func (x *examples) rewarded(group string, p *events.GroupRewarded) {
	buffered := x.release(group)
	answer, share := nearlyRight(p)
	span := x.span(p.Plan.Step)
	if have, ok := x.best[span]; answer < 0 || ok && have.share >= share {
		return
	}
	for other, c := range x.best {
		if other != span && c.Problem == p.ProblemID {
			return // another span shows this problem
		}
	}
	whole := newGroupReader(group, "")
	whole.texts.left = maxWholeBytes
	var sampled *events.TestsSampled
	var executed *events.CodeExecuted
	for i := range buffered {
		// The log and the workers report an unreadable event.
		e, err := buffered[i].Decode()
		if err != nil {
			return
		}
		whole.apply(e)
		switch payload := e.Payload.(type) {
		case *events.TestsSampled:
			sampled = payload
		case *events.CodeExecuted:
			executed = payload
		}
	}
	if sampled == nil || executed == nil {
		return
	}
	if example, ok := exampleOf(sampled, executed, answer); ok {
		example.Group = group
		whole.rewarded(p)
		x.best[span] = spanExample{example, share, &whole.Group}
	}
}

// updated adds a policy version to the groups that it was trained on.
func (x *examples) updated(p *events.PolicyUpdated) {
	for _, e := range x.best {
		if slices.Contains(p.Groups, e.Group) {
			e.whole.Updates = append(e.whole.Updates, groupUpdate{p.Role, p.Version, p.Step, len(p.Groups)})
		}
	}
}

// nearlyRight returns the answer that passes the largest share of its new
// tests, but not all of them, and that share; -1 if there is none.
func nearlyRight(p *events.GroupRewarded) (answer int, passed float64) {
	answer, passed = -1, math.Inf(-1)
	for m := range p.Code {
		if p.Code[m].Masked || !p.Code[m].Loads {
			continue
		}
		var mean Mean
		for n := range p.Test[m] {
			if suite := &p.Test[m][n]; !suite.Masked && suite.Valid > 0 {
				mean.add(suite.PassNew)
			}
		}
		if share := mean.Value(); share < 1 && share > passed {
			answer, passed = m, share
		}
	}
	return answer, passed
}

// exampleOf returns the example of an answer: its first failing test that is
// right as stated.
func exampleOf(sampled *events.TestsSampled, executed *events.CodeExecuted, answer int) (Example, bool) {
	if answer >= len(sampled.Codes) || answer >= len(executed.Answers) {
		return Example{}, false
	}
	var failed *events.ExecutedTest
	ran, passed := 0, 0
	for i := range executed.Answers[answer].Suites {
		suite := &executed.Answers[answer].Suites[i]
		for j := range suite.Tests {
			test := &suite.Tests[j]
			if test.Status != events.StatusKept || test.Verdict == events.VerdictNotRun {
				continue
			}
			ran++
			if test.Verdict == events.VerdictPass {
				passed++
			} else if failed == nil && !test.Wrong && test.Verdict.Failed() {
				failed = test
			}
		}
	}
	if failed == nil {
		return Example{}, false
	}
	got := failed.Detail
	if got == "" {
		got = string(failed.Verdict)
	}
	return Example{
		Step: executed.Plan.Step, Problem: executed.ProblemID,
		Question: clip(sampled.Posed.Problem.Question), Code: clip(sampled.Codes[answer]),
		Test: clip(failed.Source), Call: clip(failed.Call), Expected: clip(failed.Expected), Got: clip(got),
		Passed: passed, Ran: ran,
	}, true
}

// clip cuts a text at maxExampleBytes, between two characters.
func clip(text string) string {
	if len(text) <= maxExampleBytes {
		return text
	}
	end := maxExampleBytes
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
