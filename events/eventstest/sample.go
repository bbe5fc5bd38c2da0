package eventstest

import (
	"fmt"
	"time"

	"codea1/events"
)

// Source is the source of every sample event.
const Source = "eventstest-0"

// At is the time of the first event of a group. Each later event is one second
// after its cause.
var At = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)

// Groups is the number of groups in a step of sample events.
const Groups = 4096

// Plan returns the plan of a training group: 2 answers, 2 suites for each
// answer, 2 tests wanted in each suite.
func Plan(step, slot int) events.Plan {
	return events.Plan{
		Purpose: events.PurposeTrain, Step: step, Slot: slot, Groups: Groups,
		Answers: 2, Suites: 2, Tests: 2,
		Temperature: 1, CodeTokens: 64, TestTokens: 64,
		Seed: uint64(step)<<32 | uint64(slot),
	}
}

// Posed returns the event that opens a group: a problem about adding numbers.
func Posed(run string, step, slot int) *events.Event {
	plan := Plan(step, slot)
	return encoded(events.New(run, plan.GroupID(), Source, At, &events.ProblemPosed{
		Plan: plan,
		Problem: events.Problem{
			ID:         fmt.Sprintf("add-%d", slot),
			Question:   fmt.Sprintf("Return the sum of a, b and %d.", slot),
			EntryPoint: "add",
			Solution:   fmt.Sprintf("def add(a, b):\n    return a + b + %d\n", slot),
		},
		Historical: []events.HistoricalTest{{Call: "add(0, 0)", Expected: fmt.Sprint(slot), Count: 3}},
	}))
}

// CodeSampled returns the event that follows from a Posed: a correct answer and
// one that does not add the constant.
func CodeSampled(posed *events.Event) *events.Event {
	p := posed.Payload.(*events.ProblemPosed)
	return follow(posed, &events.CodeSampled{
		Posed:  *p,
		Prompt: events.Int32s{1, 2, 3},
		Answers: []events.Completion{
			completion("```python\n" + p.Problem.Solution + "```"),
			completion("```python\ndef add(a, b):\n    return a + b\n```"),
		},
	})
}

// TestsSampled returns the event that follows from a CodeSampled. The second
// suite of each answer states a wrong value.
func TestsSampled(sampled *events.Event) *events.Event {
	p := sampled.Payload.(*events.CodeSampled)
	t := &events.TestsSampled{Posed: p.Posed, CodeVersion: p.Version}
	for range p.Answers {
		t.Codes = append(t.Codes, p.Posed.Problem.Solution)
		t.Prompts = append(t.Prompts, events.Int32s{4, 5, 6})
		t.Suites = append(t.Suites, []events.Completion{
			completion(fmt.Sprintf("```python\nassert add(1, 2) == %d\n```", 3+p.Posed.Plan.Slot)),
			completion("```python\nassert add(1, 2) == 'three'\n```"),
		})
	}
	return follow(sampled, t)
}

// CodeExecuted returns the event that follows from a TestsSampled. The first
// answer passes every test, the second fails every test.
func CodeExecuted(sampled *events.Event) *events.Event {
	p := sampled.Payload.(*events.TestsSampled)
	truth := fmt.Sprint(3 + p.Posed.Plan.Slot)
	verdicts := []events.Verdict{events.VerdictPass, events.VerdictFail}
	c := &events.CodeExecuted{
		Plan: p.Posed.Plan, ProblemID: p.Posed.Problem.ID,
		CodeVersion: p.CodeVersion, TestVersion: p.Version, Historical: p.Posed.Historical,
	}
	for m := range p.Suites {
		a := events.ExecutedAnswer{Loads: true, Historical: []events.Verdict{verdicts[m%2]}}
		for n := range p.Suites[m] {
			a.Suites = append(a.Suites, events.ExecutedSuite{
				Chars: len(p.Suites[m][n].Text),
				Tests: []events.ExecutedTest{{
					Source: "assert add(1, 2) == " + truth, Status: events.StatusKept, Call: "add(1, 2)",
					Stated: truth, Expected: truth, Wrong: n == 1, Verdict: verdicts[m%2],
				}},
			})
		}
		c.Answers = append(c.Answers, a)
	}
	return follow(sampled, c)
}

// GroupRewarded returns the event that follows from a CodeExecuted. Its rewards
// are plausible and follow no recipe.
func GroupRewarded(executed *events.Event) *events.Event {
	p := executed.Payload.(*events.CodeExecuted)
	g := &events.GroupRewarded{
		Plan: p.Plan, ProblemID: p.ProblemID, CodeVersion: p.CodeVersion, TestVersion: p.TestVersion,
		Recipe: "a1", Alpha: 0.5, TopVar: 1,
		Deltas: []events.BookDelta{
			{Call: "add(0, 0)", Expected: fmt.Sprint(p.Plan.Slot), Change: -1},
			{Call: "add(1, 2)", Expected: fmt.Sprint(3 + p.Plan.Slot), Change: 2},
		},
	}
	for m := range p.Answers {
		g.Code = append(g.Code, events.AnswerReward{Reward: float64(1 - m%2), Advantage: 0.5 - float64(m%2), Loads: true})
		g.Test = append(g.Test, make([]events.SuiteReward, len(p.Answers[m].Suites)))
		for n := range g.Test[m] {
			g.Test[m][n] = events.SuiteReward{Reward: 0.25 * float64(m+n), Advantage: float64(n) - 0.5, Valid: 1, Invalid: n}
		}
	}
	return follow(executed, g)
}

// Chain returns the five events of a group, from problem.posed to
// group.rewarded.
func Chain(run string, step, slot int) []*events.Event {
	posed := Posed(run, step, slot)
	code := CodeSampled(posed)
	tests := TestsSampled(code)
	executed := CodeExecuted(tests)
	return []*events.Event{posed, code, tests, executed, GroupRewarded(executed)}
}

// Encode returns the message of an event. It panics on an event that is not
// valid; no sample is.
func Encode(e *events.Event) events.Message {
	m, err := events.Encode(e)
	if err != nil {
		panic(err)
	}
	return m
}

func follow(cause *events.Event, payload events.Payload) *events.Event {
	return encoded(events.Caused(cause, Source, cause.Time.Add(time.Second), payload))
}

// encoded sets the event's hash: a cause needs one.
func encoded(e *events.Event) *events.Event {
	Encode(e)
	return e
}

func completion(text string) events.Completion {
	c := events.Completion{Text: text, Finish: events.FinishStop}
	for i, r := range []byte(text) {
		c.Tokens = append(c.Tokens, int32(r))
		c.LogProbs = append(c.LogProbs, -float32(i%7)/8)
	}
	return c
}
