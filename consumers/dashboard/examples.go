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

// Bounds of what is kept for examples.
const (
	maxExamples     = 5
	maxHeldBytes    = 32 << 20 // events of groups that are not rewarded yet
	maxExampleBytes = 4 << 10  // of each text of an example
)

// Example is an answer that a new test broke: one the Test LLM got right and
// the answer did not.
type Example struct {
	Step     int
	Group    string
	Problem  string // its ID
	Question string
	Code     string // the answer
	Test     string // the statement, as the Test LLM wrote it
	Call     string
	Expected string // the ground truth's value, a Python literal
	Got      string // what the answer did instead
	Passed   int    // new tests that the answer passes,
	Ran      int    // of these
}

// examples picks examples from all over a run: the run is cut into maxExamples
// spans of steps, and of each the answer is kept that was most nearly right,
// because a test that breaks such an answer is the hardest to find.
//
// What it takes to show one is in the two largest events of a group. They are
// held undecoded until the group's rewards say whether it is worth a look.
type examples struct {
	steps int // of the run
	held  map[string][]events.Message
	order []string // groups held, oldest first
	bytes int      // held
	best  map[int]candidate
}

// candidate is the example of a span.
type candidate struct {
	Example
	merit float64 // share of new tests passed
}

func newExamples() examples {
	return examples{held: map[string][]events.Message{}, best: map[int]candidate{}}
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

// plan says how many steps the run has. A resumed run may have others.
func (x *examples) plan(steps int) {
	x.steps = steps
	before := x.best
	x.best = map[int]candidate{}
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

func (x *examples) offer(c candidate) {
	if have, ok := x.best[x.span(c.Step)]; !ok || c.merit > have.merit {
		x.best[x.span(c.Step)] = c
	}
}

// hold keeps an event of a training group until the group ends.
func (x *examples) hold(m *events.Message) {
	if m.Type != events.TypeTestsSampled && m.Type != events.TypeCodeExecuted || strings.HasPrefix(m.Group, "e-") {
		return
	}
	for x.bytes+len(m.Data) > maxHeldBytes && len(x.order) > 0 {
		x.release(x.order[0])
	}
	if x.bytes+len(m.Data) > maxHeldBytes {
		return
	}
	if _, ok := x.held[m.Group]; !ok {
		x.order = append(x.order, m.Group)
	}
	x.held[m.Group] = append(x.held[m.Group], *m)
	x.bytes += len(m.Data)
}

// release forgets a group and returns what was held of it.
func (x *examples) release(group string) []events.Message {
	held, ok := x.held[group]
	if !ok {
		return nil
	}
	for i := range held {
		x.bytes -= len(held[i].Data)
	}
	delete(x.held, group)
	x.order = slices.DeleteFunc(x.order, func(g string) bool { return g == group })
	return held
}

// rewarded looks for an example in a group.
func (x *examples) rewarded(group string, p *events.GroupRewarded) {
	held := x.release(group)
	answer, merit := nearlyRight(p)
	span := x.span(p.Plan.Step)
	if have, ok := x.best[span]; answer < 0 || ok && have.merit >= merit {
		return
	}
	for other, c := range x.best {
		if other != span && c.Problem == p.ProblemID {
			return // seen already
		}
	}
	var sampled *events.TestsSampled
	var executed *events.CodeExecuted
	for i := range held {
		// What cannot be read here has been refused by name elsewhere.
		e, err := held[i].Decode()
		if err != nil {
			return
		}
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
		x.best[span] = candidate{example, merit}
	}
}

// nearlyRight returns the answer that passes the largest share of its new
// tests without passing all of them, and that share; -1 if there is none.
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

// exampleOf returns the first test that broke an answer, of those that state
// the right value.
func exampleOf(sampled *events.TestsSampled, executed *events.CodeExecuted, answer int) (Example, bool) {
	if answer >= len(sampled.Codes) || answer >= len(executed.Answers) {
		return Example{}, false
	}
	var broke *events.ExecutedTest
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
			} else if broke == nil && !test.Wrong && test.Verdict.Failed() {
				broke = test
			}
		}
	}
	if broke == nil {
		return Example{}, false
	}
	got := broke.Detail
	if got == "" {
		got = string(broke.Verdict)
	}
	return Example{
		Step: executed.Plan.Step, Problem: executed.ProblemID,
		Question: clip(sampled.Posed.Problem.Question), Code: clip(sampled.Codes[answer]),
		Test: clip(broke.Source), Call: clip(broke.Call), Expected: clip(broke.Expected), Got: clip(got),
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
