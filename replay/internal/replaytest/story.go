package replaytest

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"codea1/events"
)

// Story makes the events of a small run as its stages would: two steps of two problems,
// two answers each with two suites, an evaluation group, and a version of both models
// after each step. Both steps pose p0.
type Story struct {
	t        testing.TB
	Messages []events.Message
	clock    time.Time
	NoGolden bool // the next groups have no golden tests
}

// Steps, Groups, Answers and Suites are the numbers of the story.
const (
	Steps   = 2
	Groups  = 2 // per step
	Answers = 2
	Suites  = 2
)

// NewStory returns a story without events.
func NewStory(t testing.TB) *Story { return &Story{t: t, clock: Time} }

// Tell returns the messages of a whole run.
func Tell(t testing.TB) []events.Message {
	s := NewStory(t)
	s.Start()
	s.Group(s.Plan(events.PurposeEval, 0, 0))
	for step := 1; step <= Steps; step++ {
		s.Step(step)
	}
	s.Finish()
	return s.Messages
}

// Add adds an event, a second after the last.
func (s *Story) Add(e *events.Event) *events.Event {
	s.clock = s.clock.Add(time.Second)
	e.Time = s.clock
	s.Messages = append(s.Messages, Encode(s.t, e))
	return e
}

// Root adds an event without a cause.
func (s *Story) Root(group string, p events.Payload) *events.Event {
	return s.Add(events.New(Run, group, "main", s.clock, p))
}

// Then adds an event with a cause.
func (s *Story) Then(cause *events.Event, p events.Payload) *events.Event {
	return s.Add(events.Caused(cause, string(p.EventType())+"-0", s.clock, p))
}

// Start starts the run.
func (s *Story) Start() {
	s.Root("start-0001", &events.RunStarted{Attempt: 1, Steps: Steps, Build: "test", Code: Checkpoint("code", 0), Test: Checkpoint("test", 0)})
}

// Finish completes the run.
func (s *Story) Finish() {
	s.Root("end-0001", &events.RunFinished{Attempt: 1, Steps: Steps, Reason: events.RunCompleted})
}

// Step adds a step with its groups and versions.
func (s *Story) Step(step int) {
	var groups []string
	for slot := range Groups {
		groups = append(groups, s.Group(s.Plan(events.PurposeTrain, step, slot)))
	}
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		s.Update(role, step, groups)
	}
}

// Update adds a policy version.
func (s *Story) Update(role events.Role, step int, groups []string) *events.Event {
	return s.Root(fmt.Sprintf("%s-v%06d", role, step), &events.PolicyUpdated{
		Role: role, Version: step, Step: step, Groups: groups, Checkpoint: Checkpoint(string(role), step),
		Metrics: events.PolicyMetrics{Sequences: 4, Tokens: 40, RewardMean: 0.5},
	})
}

// Checkpoint returns the checkpoint of a version.
func Checkpoint(role string, version int) events.Checkpoint {
	return events.Checkpoint{URI: fmt.Sprintf("file:///runs/r1/checkpoints/%s/v%06d", role, max(version, -version)), SHA256: fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s %d", role, version)))}
}

// Plan returns the plan of a group.
func (s *Story) Plan(purpose events.Purpose, step, slot int) events.Plan {
	plan := events.Plan{Purpose: purpose, Step: step, Slot: slot, Groups: Groups, Answers: Answers, Suites: Suites, Tests: 2, Temperature: 1}
	if purpose == events.PurposeEval {
		plan.Tag, plan.Groups = "before", 1
	}
	return plan
}

// Group makes all events of a group and returns its name.
func (s *Story) Group(plan events.Plan) string {
	executed := s.Executed(plan)
	if plan.Purpose == events.PurposeEval {
		s.Then(executed, &events.EvalScored{
			Plan: plan, ProblemID: "p0", Correct: []bool{true, false}, Suites: 4, Wanted: 8, Stated: 8, Right: 6, Defective: 2, Found: 1,
			Inputs: &events.InputCounts{Kept: 7, Trivial: 3, Reached: 2},
		})
		return executed.Group
	}
	score, err := Recipes{}.Recipe("share", 0.5)
	if err != nil {
		s.t.Fatal(err)
	}
	g, err := score(executed.Payload.(*events.CodeExecuted))
	if err != nil {
		s.t.Fatal(err)
	}
	s.Then(executed, g)
	return executed.Group
}

// Executed makes the events of a group up to its verdicts. Answer 0 passes everything;
// answer 1 defines __eq__, raises on f(0) of every suite and fails f(slot+1).
// From step 2 on f(0) is a historical test, and both answers pass it.
func (s *Story) Executed(plan events.Plan) *events.Event {
	problem := events.Problem{ID: fmt.Sprintf("p%d", plan.Slot), Question: "What is f?\nReturn x.", EntryPoint: "f", Solution: "def f(x):\n    return x"}
	var historical []events.HistoricalTest
	if plan.Step == 2 {
		historical = []events.HistoricalTest{{Call: "f(0)", Expected: "0", Count: 2}}
	}
	posed := s.Root(plan.GroupID(), &events.ProblemPosed{Plan: plan, Problem: problem, Historical: historical})
	p := *posed.Payload.(*events.ProblemPosed)
	codes := []string{"def f(x):\n    return x", "class X:\n    def __eq__(self, o): return True\ndef f(x):\n    return X()"}
	completion := func(text string) events.Completion {
		return events.Completion{Text: text, Tokens: events.Int32s{1, 2}, LogProbs: events.Float32s{-0.5, -0.25}, Finish: events.FinishStop}
	}
	answers, suites := []events.Completion{}, [][]events.Completion{}
	executed := &events.CodeExecuted{Plan: plan, ProblemID: problem.ID, Historical: historical, Answers: make([]events.ExecutedAnswer, plan.Answers)}
	for m := range plan.Answers {
		answers = append(answers, completion("```python\n"+codes[m]+"\n```"))
		row := []events.Completion{}
		a := &executed.Answers[m]
		a.Loads = true
		for range historical {
			a.Historical = append(a.Historical, events.VerdictPass)
		}
		if !s.NoGolden {
			a.Golden = []events.GoldenVerdict{{Verdict: events.VerdictPass}, {Verdict: Verdict(m, events.VerdictFail)}}
		}
		for n := range plan.Suites {
			text := fmt.Sprintf("assert f(0) == 0\nassert f(%d) == %d\nassert f(", plan.Slot+1, plan.Slot+1+n)
			row = append(row, completion(text))
			a.Suites = append(a.Suites, events.ExecutedSuite{Chars: len(text), Tests: []events.ExecutedTest{
				{Source: "assert f(0) == 0", Status: events.StatusKept, Call: "f(0)", Stated: "0", Expected: "0", Verdict: Verdict(m, events.VerdictRaised), Detail: strings.Repeat("ValueError", m)},
				{Source: "assert f(1)", Status: events.StatusKept, Call: fmt.Sprintf("f(%d)", plan.Slot+1), Stated: fmt.Sprint(plan.Slot + 1 + n),
					Expected: fmt.Sprint(plan.Slot + 1), Wrong: n > 0, Verdict: Verdict(m*(1-n), events.VerdictFail)},
				{Source: "assert f(", Status: events.StatusUnparsable, Verdict: events.VerdictNotRun, Detail: "unexpected end"},
			}})
		}
		suites = append(suites, row)
	}
	code := s.Then(posed, &events.CodeSampled{Posed: p, Prompt: events.Int32s{7}, Answers: answers})
	tests := s.Then(code, &events.TestsSampled{Posed: p, Codes: codes, Prompts: []events.Int32s{{8}, {9}}, Suites: suites})
	return s.Then(tests, executed)
}

// Verdict returns pass for answer 0, and other for all others.
func Verdict(m int, other events.Verdict) events.Verdict {
	if m == 0 {
		return events.VerdictPass
	}
	return other
}
