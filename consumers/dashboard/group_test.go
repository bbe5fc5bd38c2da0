package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codea1/events"
	"codea1/events/natsbus/natstest"
)

// hostileText has what a model may write to harm its reader.
const hostileText = "\u202e<img src=x onerror=\"document.title='evil'\">\x1b[31m"

// whole makes all events of a group with two answers of one suite each. The second
// answer fails a test, which enters the Mistake Book.
func (s *script) whole(step int, text string) []*events.Event {
	plan := events.Plan{Purpose: events.PurposeTrain, Step: step, Groups: 1, Answers: 2, Suites: 1, Tests: 2, Temperature: 1}
	group := plan.GroupID()
	posed := events.ProblemPosed{Plan: plan, Problem: events.Problem{
		ID: "p<b>", Question: "Double x " + text, EntryPoint: "f", Solution: "def f(x): return 2 * x",
	}}
	long := strings.Repeat("x", 1<<18) // the limit of a text in an event
	answers := make([]events.Completion, 2)
	for m := range answers {
		answers[m] = events.Completion{Text: "```python\ndef f(x):\n    return 'a" + text + "'\n```", Finish: events.FinishStop}
	}
	sampled := &events.TestsSampled{
		Posed: posed, Codes: []string{"def f(x):\n    return 2 * x  # " + text, "def f(x): return x"}, Prompts: make([]events.Int32s, 2),
		Suites: [][]events.Completion{{{Text: long, Finish: events.FinishStop}}, {{Text: text, Finish: events.FinishLength}}},
	}
	test := func(call, expected string, verdict events.Verdict) events.ExecutedTest {
		return events.ExecutedTest{
			Source: "assert " + call + " == " + expected, Status: events.StatusKept, Call: call, Stated: expected, Expected: expected, Verdict: verdict, Detail: text,
		}
	}
	ran := &events.CodeExecuted{Plan: plan, ProblemID: "p<b>", Answers: []events.ExecutedAnswer{
		{Loads: true, Suites: []events.ExecutedSuite{{Tests: []events.ExecutedTest{test("f(0)", "0", events.VerdictPass), test("f(2)", "4", events.VerdictPass)}}}},
		{Loads: true, Suites: []events.ExecutedSuite{{Tests: []events.ExecutedTest{test("f(0)", "0", events.VerdictPass), test("f(1)", "2", events.VerdictFail)}}}},
	}}
	rewarded := &events.GroupRewarded{
		Plan: plan, ProblemID: "p<b>", Recipe: "a1", Alpha: 0.5, TopVar: 1,
		Code:   []events.AnswerReward{{Reward: 1, Loads: true}, {Reward: 0.5, Advantage: -1, Loads: true}},
		Test:   [][]events.SuiteReward{{{PassNew: 1, Valid: 2}}, {{PassNew: 0.5, FailNew: 0.5, Valid: 2}}},
		Deltas: []events.BookDelta{{Call: "f(1)", Expected: "2", Change: 1}},
	}
	var all []*events.Event
	first := events.New("r1", group, "curriculum-0", s.at, &posed)
	all = append(all, first)
	for _, p := range []events.Payload{&events.CodeSampled{Posed: posed, Answers: answers}, sampled, ran, rewarded} {
		e := events.Caused(all[len(all)-1], "test-0", s.at, p)
		e.CausationHash = strings.Repeat("ab", 32)
		all = append(all, e)
	}
	return all
}

// TestGroupIsReadAgain reads a group from the bus as the page shows it: whole, cut,
// and with the versions that were trained on it.
func TestGroupIsReadAgain(t *testing.T) {
	bus := natstest.Bus(t)
	s := &script{at: noon}
	es := []*events.Event{s.started(1, 9)}
	for step := 1; step <= 3; step++ {
		es = append(es, s.whole(step, "x")...)
		for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
			u := s.updated(role, step)
			u.Payload.(*events.PolicyUpdated).Groups = []string{fmt.Sprintf("s%06d-q0000", step)}
			es = append(es, u)
		}
	}
	if err := bus.Publish(t.Context(), encode(t, es...)...); err != nil {
		t.Fatal(err)
	}
	f := NewFollower()
	follow(t, f, bus)
	waitFor(t, f, "step 3", func(s *State) bool { return s.Trained() == 3 })
	g, err := f.Group(t.Context(), "s000002-q0000")
	if err != nil {
		t.Fatal(err)
	}
	if g.Problem != "p<b>" || len(g.Answers) != 2 || g.Answers[1].Suites[0].Tests[1].Verdict != events.VerdictFail || *g.Answers[1].Advantage != -1 ||
		g.TopVar != 1 || len(g.Deltas) != 1 || len(g.Events) != 5 {
		t.Errorf("the group is %+v", g)
	}
	if diff := cmp.Diff([]groupUpdate{{events.RoleCode, 2, 2, 1}, {events.RoleTest, 2, 2, 1}}, g.Updates); diff != "" {
		t.Error(diff)
	}
	if n := len(g.Answers[0].Suites[0].Response); n > maxTextBytes+100 {
		t.Errorf("a response of %d bytes", n)
	}
	for _, name := range []string{"s000009-q0000", "s000002-q0001", "", "e-x-0001", "../../etc", "s000002-q"} {
		if _, err := f.Group(t.Context(), name); !errors.Is(err, ErrNoGroup) {
			t.Errorf("group %q: %v", name, err)
		}
	}
	server, _ := serve(t, f)
	for path, want := range map[string]int{
		"api/group?name=s000003-q0000": 200, "api/group?name=x": 404, "api/groups?step=2": 200, "api/groups?step=x": 400, "api/book?q=double": 200,
		"api/run?name=../r2": 400, "api/runs": 200, "api/deadletters": 200, "api/book?q=" + strings.Repeat("x", maxQueryBytes): 400,
	} {
		if status, body, _ := request(t, server.URL()+path); status != want {
			t.Errorf("/%.40s: status %d, %.200s", path, status, body)
		}
	}
	if status, body, _ := request(t, server.URL()+"api/groups?step=2"); status != http.StatusOK || strings.Count(body, `"group":`) != 1 {
		t.Errorf("the groups of step 2: %s", body)
	}
}

// dead is a bus in an outage without an end.
type dead struct{}

func (dead) Read(ctx context.Context, _ events.ReadConfig) (events.Reader, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestGroupIsReadFromTheLogAfterTheBus asks for a group while the bus has ended and the
// log has not taken its place yet.
func TestGroupIsReadFromTheLogAfterTheBus(t *testing.T) {
	s := &script{at: noon}
	messages := encode(t, append([]*events.Event{s.started(1, 9)}, s.whole(1, "x")...)...)
	live, log := NewFollower(), NewFollower()
	for _, f := range []*Follower{live, log} {
		if err := f.Follow(t.Context(), &reader{messages: messages, err: io.EOF}, "r1", events.Start); err != nil {
			t.Fatal(err)
		}
	}
	live.setFollowing(false, dead{})
	log.setFollowing(false, &reader{messages: messages, err: io.EOF})
	asked := make(chan error, 1)
	go func() {
		g, err := live.Group(t.Context(), "s000001-q0000")
		if err == nil && len(g.Answers) != 2 {
			err = fmt.Errorf("%d answers", len(g.Answers))
		}
		asked <- err
	}()
	changes, unsubscribe := live.Subscribe()
	defer unsubscribe()
	<-changes
	clock := live.state.Series.clock
	live.Replace(log)
	if err := <-asked; err != nil {
		t.Error(err)
	}
	// An open page gets the whole series of the log.
	if part := live.state.Series.view(clock); part["from"] != 0 || len(part["step"].([]int)) != 1 {
		t.Errorf("the page gets the points from %v: %v", part["from"], part["step"])
	}
}

// TestBookIsSearched finds tests by question, call and value, with the answers that
// changed their counts.
func TestBookIsSearched(t *testing.T) {
	s, f := &script{at: noon}, NewFollower()
	applyTo(t, f, s.started(1, 9))
	applyTo(t, f, s.whole(1, "")...)
	applyTo(t, f, s.whole(2, "")...)
	find := func(q bookQuery) (view bookView) {
		f.View(func(s *State) { q.most = 9; view = s.Book.find(q) })
		return view
	}
	for text, want := range map[string]int{"": 1, "dOuBle": 1, "f(1)": 1, "P<B>": 1, "f(2)": 0} {
		if view := find(bookQuery{text: text}); view.Matches != want || len(view.Tests) != want || view.Size != 1 {
			t.Errorf("%q: %+v", text, view)
		}
	}
	view := find(bookQuery{problem: "p<b>", sort: "failed"})
	want := []bookTest{{Problem: "p<b>", Question: "Double x ", Call: "f(1)", Expected: "2", Count: 2, Failed: 2, Changes: []bookChange{
		{Step: 1, Group: "s000001-q0000", Change: 1, Count: 1, Answers: []int{1}}, {Step: 2, Group: "s000002-q0000", Change: 1, Count: 2, Answers: []int{1}},
	}}}
	if diff := cmp.Diff(want, view.Tests); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]problemCount{{"p<b>", "Double x ", 1, 2}}, view.Problems); diff != "" {
		t.Error(diff)
	}
	if view := find(bookQuery{problem: "other"}); view.Matches != 0 {
		t.Errorf("another problem: %+v", view)
	}
}

// TestBookTextsAreBounded enters more text than the book keeps. Its counts stay
// right, and tests that left it make room first.
func TestBookTextsAreBounded(t *testing.T) {
	b := newBook()
	value := strings.Repeat("v", 1<<20)
	enter := func(i, change int) {
		b.apply("g", 1, "p", []events.BookDelta{{Call: fmt.Sprintf("f(%d)", i), Expected: value, Change: change}})
	}
	for i := range 20 {
		enter(i, 1)
		enter(i, -1)
	}
	for i := range 40 {
		enter(100+i, 1)
		if b.bytes > maxBookBytes {
			t.Fatalf("%d bytes of texts", b.bytes)
		}
	}
	if b.Size() != 40 || b.Left != 20 || b.Unlisted == 0 || len(b.tests)+b.Unlisted != 40 {
		t.Errorf("%d tests, %d left, %d with a text, %d without", b.Size(), b.Left, len(b.tests), b.Unlisted)
	}
	b = newBook()
	value = "1"
	for range 3 * maxChanges {
		enter(100, 1)
	}
	if n := len(b.tests[testKey("p", "f(100)", value)].Changes); n != maxChanges {
		t.Errorf("%d changes of a test are kept", n)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	x := groupIndex{evals: map[string]events.Position{}}
	for step := 1; step <= 3*maxGroupSpots; step++ {
		x.posed(&events.Plan{Purpose: events.PurposeTrain, Step: step}, events.Position(fmt.Sprint(step)))
		x.add(groupRow{Step: step})
	}
	for i := range 2 * maxGroups {
		x.add(groupRow{Step: i})
	}
	if len(x.rows) > maxGroups || len(x.spots) > maxGroupSpots || x.cut == 0 {
		t.Errorf("%d rows, %d positions, %d left out", len(x.rows), len(x.spots), x.cut)
	}
	// The position is that of the step or of one before it.
	for _, step := range []int{1, 2, 77, maxGroupSpots, 3 * maxGroupSpots} {
		var from int
		position, known := x.position(fmt.Sprintf("s%06d-q0003", step))
		if _, err := fmt.Sscan(string(position), &from); err != nil || !known || from > step || from < step-64 {
			t.Errorf("step %d is read from %q, %v", step, position, known)
		}
	}
}

// TestTextsAreCut cuts any text within its bounds, between characters, and says so.
func TestTextsAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringN(0, 40, -1)
		var b strings.Builder
		for range rapid.IntRange(0, 30).Draw(t, "lines") {
			b.WriteString(strings.Repeat(line.Draw(t, "line"), rapid.IntRange(1, 300).Draw(t, "times")))
			b.WriteString(rapid.SampledFrom([]string{"\n", ""}).Draw(t, "end"))
		}
		text, budget := b.String(), textBudget{left: rapid.IntRange(-5, 1<<16).Draw(t, "budget")}
		got := budget.cut(text)
		if most := maxTextBytes + 64*strings.Count(text, "\n") + 64; len(got) > most || longestLine(got) > maxLineBytes+64 {
			t.Fatalf("%d bytes, the longest line %d", len(got), longestLine(got))
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Fatal("a character was cut")
		}
		if got != text && !strings.Contains(got, " more bytes)") {
			t.Fatal("nothing says that the text was cut")
		}
	})
}

// TestSpansAddUpToTheStep measures a step with a slow Test LLM.
func TestSpansAddUpToTheStep(t *testing.T) {
	s, state := &script{at: noon}, NewState()
	state.Apply(s.started(1, 9))
	es := s.whole(1, "")
	es[1].Time = es[0].Time.Add(time.Second)
	es[2].Time = es[1].Time.Add(6 * time.Second)
	es[3].Time = es[2].Time.Add(time.Second)
	es[4].Time = es[3].Time.Add(time.Second)
	s.at = es[4].Time.Add(2 * time.Second)
	for _, e := range append(es, s.updated(events.RoleTest, 1)) {
		state.Apply(e)
	}
	s.at = s.at.Add(time.Second)
	state.Apply(s.updated(events.RoleCode, 1))
	want := Binding{Step: 1, Seconds: 12, Text: "rollout-test: 50% of step 1, 6.0 s of 12.0 s", Spans: []Span{
		{events.StageRolloutCode, 1, 1.0 / 12}, {events.StageRolloutTest, 6, 0.5}, {events.StageExecution, 1, 1.0 / 12},
		{events.StageRewards, 1, 1.0 / 12}, {events.StageTrainerCode, 3, 0.25},
	}}
	if diff := cmp.Diff(want, state.Snapshot().Binding); diff != "" {
		t.Error(diff)
	}
}

// The lines of a predict problem take the place of golden tests.
func TestGroupOfAPredictProblem(t *testing.T) {
	g := newGroupReader("s000001-q0000", events.ModelsCode)
	g.posed(&events.ProblemPosed{Problem: events.Problem{ID: "p", Predict: []events.Prediction{{Kind: events.PredictNext, Accepted: []string{"2", "'return x'"}}}}})
	g.executed(&events.CodeExecuted{Predict: []events.Predicted{events.PredictNext}, Answers: []events.ExecutedAnswer{{Loads: true, Golden: []events.GoldenVerdict{{Verdict: events.VerdictPass}}}}})
	if diff := cmp.Diff([]string{"next 2 or 'return x'"}, g.Golden); diff != "" || len(g.Answers[0].Golden) != 1 {
		t.Errorf("%+v (-want +got):\n%s", g.Answers, diff)
	}
}
