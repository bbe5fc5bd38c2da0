package replay

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"codea1/events"
)

// story writes the events of a small run as its stages would: two steps of two
// questions, two answers each with two suites, an evaluation group, and a
// version of both models after each step. p0 is posed in both steps.
type story struct {
	t        testing.TB
	messages []events.Message
	clock    time.Time
}

const storySteps, storyGroups, storyAnswers, storySuites = 2, 2, 2, 2

func newStory(t testing.TB) *story { return &story{t: t, clock: testTime} }

// tell returns a whole completed run.
func tell(t testing.TB) []events.Message {
	s := newStory(t)
	s.start()
	s.group(s.plan(events.PurposeEval, 0, 0))
	for step := 1; step <= storySteps; step++ {
		s.step(step)
	}
	s.finish()
	return s.messages
}

func (s *story) add(e *events.Event) *events.Event {
	s.clock = s.clock.Add(time.Second)
	e.Time = s.clock
	s.messages = append(s.messages, encode(s.t, e))
	return e
}

func (s *story) root(group string, p events.Payload) *events.Event {
	return s.add(events.New(testRun, group, "main", s.clock, p))
}

func (s *story) then(cause *events.Event, p events.Payload) *events.Event {
	return s.add(events.Caused(cause, string(p.EventType())+"-0", s.clock, p))
}

func (s *story) start() {
	s.root("start-0001", &events.RunStarted{Attempt: 1, Steps: storySteps, Build: "test", Code: checkpoint("code", 0), Test: checkpoint("test", 0)})
}

func (s *story) finish() {
	s.root("end-0001", &events.RunFinished{Attempt: 1, Steps: storySteps, Reason: events.RunCompleted})
}

func (s *story) step(step int) {
	var groups []string
	for slot := range storyGroups {
		groups = append(groups, s.group(s.plan(events.PurposeTrain, step, slot)))
	}
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		s.update(role, step, groups)
	}
}

func (s *story) update(role events.Role, step int, groups []string) *events.Event {
	return s.root(fmt.Sprintf("%s-v%06d", role, step), &events.PolicyUpdated{
		Role: role, Version: step, Step: step, Groups: groups, Checkpoint: checkpoint(string(role), step),
		Metrics: events.PolicyMetrics{Sequences: 4, Tokens: 40, RewardMean: 0.5},
	})
}

func checkpoint(role string, version int) events.Checkpoint {
	return events.Checkpoint{URI: fmt.Sprintf("file:///runs/r1/%s/v%d", role, version), SHA256: hashOf(fmt.Appendf(nil, "%s %d", role, version)).String()}
}

func (s *story) plan(purpose events.Purpose, step, slot int) events.Plan {
	plan := events.Plan{Purpose: purpose, Step: step, Slot: slot, Groups: storyGroups, Answers: storyAnswers, Suites: storySuites, Tests: 2, Temperature: 1}
	if purpose == events.PurposeEval {
		plan.Tag, plan.Groups = "before", 1
	}
	return plan
}

// group tells a group from its question to its end and returns its name.
func (s *story) group(plan events.Plan) string {
	executed := s.executed(plan)
	if plan.Purpose == events.PurposeEval {
		s.then(executed, &events.EvalScored{Plan: plan, ProblemID: "p0", Correct: []bool{true, false}, Suites: 4, Wanted: 8, Stated: 8, Valid: 6, Defective: 2, Found: 1})
		return executed.Group
	}
	rewarded, err := (testRecipes{}).Recipe("share", 0.5)
	if err != nil {
		s.t.Fatal(err)
	}
	g, err := rewarded(executed.Payload.(*events.CodeExecuted))
	if err != nil {
		s.t.Fatal(err)
	}
	s.then(executed, g)
	return executed.Group
}

// executed tells a group up to its verdicts. Answer 0 passes everything;
// answer 1 defines __eq__, raises on f(0) of every suite and fails f(slot+1).
// From step 2 on f(0) is a historical test, and both answers pass it.
func (s *story) executed(plan events.Plan) *events.Event {
	problem := events.Problem{ID: fmt.Sprintf("p%d", plan.Slot), Question: "What is f?\nReturn x.", EntryPoint: "f", Solution: "def f(x):\n    return x"}
	var historical []events.HistoricalTest
	if plan.Step == 2 {
		historical = []events.HistoricalTest{{Call: "f(0)", Expected: "0", Count: 2}}
	}
	posed := s.root(plan.GroupID(), &events.ProblemPosed{Plan: plan, Problem: problem, Historical: historical})
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
		a.Golden = []events.GoldenVerdict{{Verdict: events.VerdictPass}, {Verdict: verdictOf(m, events.VerdictFail)}}
		for n := range plan.Suites {
			text := fmt.Sprintf("assert f(0) == 0\nassert f(%d) == %d\nassert f(", plan.Slot+1, plan.Slot+1+n)
			row = append(row, completion(text))
			a.Suites = append(a.Suites, events.ExecutedSuite{Chars: len(text), Tests: []events.ExecutedTest{
				{Source: "assert f(0) == 0", Status: events.StatusKept, Call: "f(0)", Stated: "0", Expected: "0", Verdict: verdictOf(m, events.VerdictRaised), Detail: strings.Repeat("ValueError", m)},
				{Source: "assert f(1)", Status: events.StatusKept, Call: fmt.Sprintf("f(%d)", plan.Slot+1), Stated: fmt.Sprint(plan.Slot + 1 + n),
					Expected: fmt.Sprint(plan.Slot + 1), Wrong: n > 0, Verdict: verdictOf(m*(1-n), events.VerdictFail)},
				{Source: "assert f(", Status: events.StatusUnparsable, Verdict: events.VerdictNotRun, Detail: "unexpected end"},
			}})
		}
		suites = append(suites, row)
	}
	code := s.then(posed, &events.CodeSampled{Posed: p, Prompt: events.Int32s{7}, Answers: answers})
	tests := s.then(code, &events.TestsSampled{Posed: p, Codes: codes, Prompts: []events.Int32s{{8}, {9}}, Suites: suites})
	return s.then(tests, executed)
}

func verdictOf(m int, other events.Verdict) events.Verdict {
	if m == 0 {
		return events.VerdictPass
	}
	return other
}

// testRecipes are rules as simple as can be told apart: "share" rewards an
// answer with the share of tests it passes and a suite with those it fails,
// times alpha; "loads" rewards loading, and no test plays.
type testRecipes struct{}

var errUnknownRecipe = errors.New("unknown recipe")

func (testRecipes) Recipe(name string, alpha float64) (Score, error) {
	switch name {
	case "share":
		return func(g *events.CodeExecuted) (*events.GroupRewarded, error) { return passShare(g, alpha), nil }, nil
	case "loads":
		return func(g *events.CodeExecuted) (*events.GroupRewarded, error) {
			r := passShare(g, 0)
			r.Recipe, r.Deltas, r.TopVar = "loads", nil, -1
			for m := range r.Code {
				r.Code[m] = events.AnswerReward{Reward: 1, Loads: true}
				clear(r.Test[m])
			}
			return r, nil
		}, nil
	}
	return nil, fmt.Errorf("%w %q", errUnknownRecipe, name)
}

func passShare(g *events.CodeExecuted, alpha float64) *events.GroupRewarded {
	r := &events.GroupRewarded{Plan: g.Plan, ProblemID: g.ProblemID, Recipe: "share", Alpha: alpha,
		Code: make([]events.AnswerReward, len(g.Answers)), Test: make([][]events.SuiteReward, len(g.Answers))}
	for i, h := range g.Historical {
		for m := range g.Answers {
			if g.Answers[m].Historical[i] == events.VerdictPass {
				r.Deltas = append(r.Deltas, events.BookDelta{Call: h.Call, Expected: h.Expected, Change: -1})
			}
		}
	}
	failed := map[string]int{}
	var order []events.BookDelta
	for m := range g.Answers {
		r.Code[m].Loads = g.Answers[m].Loads
		r.Test[m] = make([]events.SuiteReward, len(g.Answers[m].Suites))
		passes, kept := 0, 0
		for n := range g.Answers[m].Suites {
			suite := &g.Answers[m].Suites[n]
			fails := 0
			for _, t := range suite.Tests {
				if t.Verdict == events.VerdictPass {
					passes++
				}
				if t.Verdict.Failed() {
					fails++
					if failed[t.Call]++; failed[t.Call] == 1 {
						order = append(order, events.BookDelta{Call: t.Call, Expected: t.Expected})
					}
				}
			}
			kept += suite.Valid()
			r.Test[m][n] = events.SuiteReward{Reward: alpha * float64(fails), Advantage: float64(n), Valid: suite.Valid(), Invalid: suite.Invalid()}
		}
		r.Code[m].Reward = float64(passes) / float64(max(kept, 1))
		r.Code[m].Advantage = float64(1-2*m) * 0.5
	}
	for _, d := range order {
		d.Change = failed[d.Call]
		r.Deltas = append(r.Deltas, d)
	}
	r.TopVar = min(1, int(alpha*4)%2)
	return r
}

// storyLog is a log with a whole told run.
func storyLog(t testing.TB, messages []events.Message) (run string, l *Log) {
	t.Helper()
	run = t.TempDir()
	l = openLog(t, Dir(run), scratch)
	mustAppend(t, l, at(0, messages...))
	return run, l
}

func TestCheckHistory(t *testing.T) {
	t.Parallel()
	_, l := storyLog(t, tell(t))
	got, err := l.CheckHistory(t.Context(), testRecipes{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Found != 0 || got.Rewarded != 4 || got.Scored != 1 || got.Recomputed != 4 || got.Versions != 4 || got.Open != 0 {
		t.Fatalf("a run as it should be: %+v", got)
	}
}

// TestCheckHistoryFinds tells runs that cannot have been.
func TestCheckHistoryFinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		want string
		tell func(s *story)
	}{
		{"a reward that does not follow", "another reward follows from its verdicts: answer 1", func(s *story) {
			e := s.executed(s.plan(events.PurposeTrain, 1, 0))
			r := passShare(e.Payload.(*events.CodeExecuted), 0.5)
			r.Code[1].Reward += 1e-6
			s.then(e, r)
		}},
		{"a reward of no recipe", "cannot be computed from its verdicts: unknown recipe", func(s *story) {
			e := s.executed(s.plan(events.PurposeTrain, 1, 0))
			r := passShare(e.Payload.(*events.CodeExecuted), 0.5)
			r.Recipe = "gone"
			s.then(e, r)
		}},
		{"an effect without its cause", "is not in the log", func(s *story) {
			s.group(s.plan(events.PurposeTrain, 1, 0))
			s.messages = append(s.messages[:2], s.messages[3:]...)
		}},
		{"an effect before its cause", "is not in the log before it", func(s *story) {
			s.group(s.plan(events.PurposeTrain, 1, 0))
			s.messages[2], s.messages[3] = s.messages[3], s.messages[2]
		}},
		{"a cause of another type", "is no code.executed", func(s *story) {
			p := posed(0, "What is f?")
			s.add(p)
			s.then(p, rewarded(p).Payload)
		}},
		{"an ID that does not follow", "does not follow from its cause", func(s *story) {
			s.group(s.plan(events.PurposeTrain, 1, 0))
			s.messages[2].ID = strings.Repeat("0", 32)
		}},
		{"a group that ends twice", "ends twice", func(s *story) {
			e := s.executed(s.plan(events.PurposeTrain, 1, 0))
			s.then(e, passShare(e.Payload.(*events.CodeExecuted), 0.5))
			s.then(e, &events.GroupDropped{Purpose: events.PurposeTrain, Step: 1, Groups: 2, Stage: "rewards", Reason: events.DropRetries})
		}},
		{"a group that never ends", "1 of its groups have not ended, among them s000001-q0000", func(s *story) {
			s.executed(s.plan(events.PurposeTrain, 1, 0))
			s.finish()
		}},
		{"a step trained twice", "code v1 follows v1", func(s *story) {
			s.step(1)
			e := s.update(events.RoleCode, 1, nil)
			s.messages[len(s.messages)-1].Group = "again"
			s.messages[len(s.messages)-1].ID = events.New(testRun, "again", "x", testTime, e.Payload).ID
		}},
		{"a version left out", "code v2 follows v0", func(s *story) { s.update(events.RoleCode, 2, nil) }},
		{"a group left out of training", "accounts for 1 of the 2 groups of step 1", func(s *story) {
			group := s.group(s.plan(events.PurposeTrain, 1, 0))
			s.group(s.plan(events.PurposeTrain, 1, 1))
			s.update(events.RoleCode, 1, []string{group})
		}},
		{"a group trained twice", "trained twice on group s000001-q0000", func(s *story) {
			group := s.group(s.plan(events.PurposeTrain, 1, 0))
			s.update(events.RoleCode, 1, []string{group, group})
		}},
		{"a group trained before its reward", "which step 1 had not rewarded", func(s *story) {
			e := s.executed(s.plan(events.PurposeTrain, 1, 0))
			s.update(events.RoleCode, 1, []string{e.Group})
		}},
		{"another order", "canonical order", func(s *story) {
			a, b := s.group(s.plan(events.PurposeTrain, 1, 0)), s.group(s.plan(events.PurposeTrain, 1, 1))
			s.update(events.RoleCode, 1, []string{b, a})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			tt.tell(s)
			_, l := storyLog(t, s.messages)
			got, err := l.CheckHistory(t.Context(), testRecipes{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text := fmt.Sprint(got.Findings); got.Found == 0 || !strings.Contains(text, tt.want) {
				t.Fatalf("found %s, want %q", text, tt.want)
			}
		})
	}
}
