package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

// executed is the result of a new test on an answer.
type executed struct {
	stated, truth, returned string
}

// failing makes the events of a group in the order of the bus: two answers with
// one suite each. The first answer passes every test.
func (s *script) failing(step, slot int, problem string, tests ...executed) []*events.Event {
	plan := events.Plan{Purpose: events.PurposeTrain, Step: step, Slot: slot, Groups: 9, Answers: 2, Suites: 1, Tests: 4, Temperature: 1}
	posed := events.ProblemPosed{Plan: plan, Problem: events.Problem{
		ID: problem, Question: "Double x & <b>return</b> it.", EntryPoint: "f", Solution: "def f(x): return 2 * x",
	}}
	sampled := &events.TestsSampled{
		Posed: posed, Codes: []string{"def f(x): return 2 * x", fmt.Sprintf("def f(x): return x * x  # </script><img src=x onerror=\"evil()\"> %d", step)},
		Prompts: make([]events.Int32s, 2),
		Suites:  [][]events.Completion{{{Finish: events.FinishStop}}, {{Finish: events.FinishStop}}},
	}
	ran := &events.CodeExecuted{Plan: plan, ProblemID: problem, Answers: make([]events.ExecutedAnswer, 2)}
	passed := 0
	for m := range ran.Answers {
		suite := events.ExecutedSuite{}
		for i, e := range tests {
			call := fmt.Sprintf("f(%d)", i)
			t := events.ExecutedTest{
				Source: "assert " + call + " == " + e.stated, Status: events.StatusKept, Call: call,
				Stated: e.stated, Expected: e.truth, Wrong: e.stated != e.truth, Verdict: events.VerdictPass,
			}
			if m == 1 && e.returned != e.truth {
				t.Verdict, t.Detail = events.VerdictFail, "returned "+e.returned
			} else if m == 1 {
				passed++
			}
			suite.Tests = append(suite.Tests, t)
		}
		ran.Answers[m] = events.ExecutedAnswer{Loads: true, Suites: []events.ExecutedSuite{suite}}
	}
	share := float64(passed) / float64(len(tests))
	rewarded := &events.GroupRewarded{
		Plan: plan, ProblemID: problem, Recipe: "a1", Code: []events.AnswerReward{{Reward: 1, Loads: true}, {Reward: share, Loads: true}},
		Test: [][]events.SuiteReward{{{PassNew: 1, Valid: len(tests)}}, {{PassNew: share, FailNew: 1 - share, Valid: len(tests)}}},
	}
	return []*events.Event{s.event(plan.GroupID(), sampled), s.event(plan.GroupID(), ran), s.event(plan.GroupID(), rewarded)}
}

func applyTo(t testing.TB, f *Follower, es ...*events.Event) {
	t.Helper()
	for _, m := range encode(t, es...) {
		f.apply(&m)
	}
}

func examplesOf(f *Follower) (out []Example) {
	f.View(func(s *State) { out = s.Examples() })
	return out
}

func TestExampleIsAFailedTestThatIsRightAsStated(t *testing.T) {
	s, f := &script{at: noon}, NewFollower()
	applyTo(t, f, s.started(1, 10))
	applyTo(t, f, s.failing(3, 1, "p1",
		executed{"0", "0", "0"}, executed{"1", "2", "1"}, executed{"4", "4", "4"}, executed{"6", "6", "9"}, executed{"8", "8", "16"})...)
	want := []Example{{
		Step: 3, Group: "s000003-q0001", Problem: "p1", Question: "Double x & <b>return</b> it.",
		Code: "def f(x): return x * x  # </script><img src=x onerror=\"evil()\"> 3",
		// The answer also fails f(1), but that test is wrong as stated.
		Test: "assert f(3) == 6", Call: "f(3)", Expected: "6", Got: "returned 9", Passed: 2, Ran: 5,
	}}
	if diff := cmp.Diff(want, examplesOf(f)); diff != "" {
		t.Error(diff)
	}
}

func TestExamplesComeFromAllPartsOfTheRun(t *testing.T) {
	s, f := &script{at: noon}, NewFollower()
	applyTo(t, f, s.started(1, 100))
	right, wrong := executed{"2", "2", "2"}, executed{"2", "2", "1"}
	for step := 1; step <= 100; step++ {
		problem := fmt.Sprintf("p%d", step)
		applyTo(t, f, s.failing(step, 0, problem, right, wrong)...)
		if step%20 == 7 {
			applyTo(t, f, s.failing(step, 1, problem+"b", right, right, right, wrong)...) // a larger share passed
		}
		// All tests pass; a test that is wrong as stated is no example.
		applyTo(t, f, s.failing(step, 2, problem+"c", right, right, right, right, right)...)
		applyTo(t, f, s.failing(step, 3, problem+"d", right, right, right, right, executed{"3", "2", "1"})...)
		// A problem is shown once.
		applyTo(t, f, s.failing(step, 4, "p7b", right, right, right, right, right, wrong)...)
	}
	var groups []string
	for _, e := range examplesOf(f) {
		groups = append(groups, e.Group)
	}
	want := []string{"s000001-q0004", "s000027-q0001", "s000047-q0001", "s000067-q0001", "s000087-q0001"}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Error(diff)
	}

	// The run is resumed with twice the steps: these examples are now of its first half.
	applyTo(t, f, s.started(2, 200))
	if n := len(examplesOf(f)); n != 3 {
		t.Errorf("%d examples of half the run, want 3", n)
	}
}

// TestBufferIsBounded checks that groups that never end do not fill the memory,
// and that groups that end leave nothing in the buffer.
func TestBufferIsBounded(t *testing.T) {
	s, f := &script{at: noon}, NewFollower()
	group := s.failing(1, 0, "p", executed{"2", "2", "1"})
	messages := encode(t, group...)
	large := messages[0]
	large.Data = make([]byte, maxBufferBytes/4)
	for i := range 12 {
		large.Group = fmt.Sprintf("s%06d-q0000", i+2)
		f.apply(&large)
	}
	large.Data = make([]byte, maxBufferBytes+1)
	f.apply(&large)
	large.Group, large.Data = "e-before-0000", []byte{1}
	f.apply(&large)
	x := &f.state.examples
	if x.bytes > maxBufferBytes || len(x.buffer) > 4 || len(x.order) != len(x.buffer) {
		t.Errorf("%d bytes of %d groups are in the buffer", x.bytes, len(x.buffer))
	}
	for _, group := range x.order {
		f.state.Apply(s.dropped(events.PurposeTrain, group, 2, 0, 1, events.DropRetries))
	}
	applyTo(t, f, group...)
	if x.bytes != 0 || len(x.buffer) != 0 || len(x.order) != 0 {
		t.Errorf("%d bytes of %v are still in the buffer", x.bytes, x.order)
	}
	if n := len(examplesOf(f)); n != 1 {
		t.Errorf("%d examples, want 1", n)
	}

	// A payload that cannot be read is no example and no failure.
	messages[1].Data = []byte{0xc1}
	for i := range messages {
		messages[i].Group = "s000002-q0005"
		f.apply(&messages[i])
	}
	if n := len(examplesOf(f)); n != 1 {
		t.Errorf("%d examples, want 1", n)
	}
}

func TestExampleTextsAreBounded(t *testing.T) {
	long := strings.Repeat("é", maxExampleBytes)
	if got := clip(long); len(got) > maxExampleBytes+len("…") || !utf8.ValidString(got) || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes", len(got))
	}
	if got := clip("short"); got != "short" {
		t.Errorf("have %q", got)
	}
}
