package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/natsbus/natstest"
)

// The judgements of an answer have the findings, and the reason of a judge that failed.
func TestStatementsOfJudges(t *testing.T) {
	judged := &events.Judged{Judges: events.JoinJudges(events.JudgeFindings, events.JudgeScore, events.JudgeVerdict), Answers: []events.Judgement{
		{Findings: []events.Finding{{ID: "B602", Severity: "high", Confidence: "low", Line: 3}}, Parses: true, Score: 0.25, Safe: true},
		{},
		{Failures: []events.Unjudged{{Judge: events.JudgeFindings, Reason: "timeout"}, {Judge: events.JudgeVerdict, Reason: "too long"}}, Parses: true, Score: -1},
	}}
	for answer, want := range [][]string{
		{"B602 in line 3: severity high, confidence low", "score 0.25", "not vulnerable"},
		{"no findings", "no score: the response is not one code block of Python", "vulnerable"},
		{"not judged (findings): timeout", "not judged (verdict): too long", "score -1"},
		nil, // an answer that the event does not have
	} {
		if diff := cmp.Diff(want, statements(judged, answer)); diff != "" {
			t.Errorf("answer %d (-want +got):\n%s", answer, diff)
		}
	}
	if lines := statements(nil, 0); lines != nil {
		t.Errorf("without judges: %v", lines)
	}
}

// The page of a run without a Test LLM shows the judgements of its answers, and neither
// charts nor figures of tests.
func TestPageOfAJudgedRun(t *testing.T) {
	browser := startChrome(t)
	bus := natstest.Bus(t)
	s := &script{at: noon}
	start := s.started(1, 3)
	run := start.Payload.(*events.RunStarted)
	run.Models, run.Test = events.ModelsJudged, events.Checkpoint{}
	plan := events.Plan{
		Purpose: events.PurposeTrain, Step: 1, Groups: 1, Answers: 1, Tests: 2, Temperature: 1, Judges: events.JoinJudges(events.JudgeFindings),
	}
	posed := events.ProblemPosed{Plan: plan, Problem: events.Problem{ID: "p", Question: "Double x", EntryPoint: "f", Solution: "def f(x): return 2 * x", Golden: []string{"assert f(1) == 2"}}}
	answer := "def f(x): return 2 * x"
	judged := &events.Judged{Judges: plan.Judges, Engine: "bandit 1.9", Lines: 1, Answers: []events.Judgement{
		{Lines: 1, Blocks: 1, Findings: []events.Finding{{ID: "B602", Severity: "high", Confidence: "high", Line: 1}}},
	}}
	all := []*events.Event{start, events.New("r1", plan.GroupID(), "curriculum-0", s.at, &posed)}
	for _, p := range []events.Payload{
		&events.CodeSampled{Posed: posed, Answers: []events.Completion{{Text: "```python\n" + answer + "\n```", Finish: events.FinishStop}}},
		&events.CodeJudged{Posed: posed, Codes: []string{answer}, Judged: judged},
		&events.CodeExecuted{Plan: plan, ProblemID: "p", Judged: judged, Answers: []events.ExecutedAnswer{{Loads: true, Golden: []events.GoldenVerdict{{Verdict: events.VerdictPass}}}}},
		&events.GroupRewarded{Plan: plan, ProblemID: "p", Recipe: "secure", TopVar: -1, Code: []events.AnswerReward{{Reward: 0.5, Loads: true}}, Test: [][]events.SuiteReward{{}}},
	} {
		e := events.Caused(all[len(all)-1], "test-0", s.at, p)
		e.CausationHash = strings.Repeat("ab", 32)
		all = append(all, e)
	}
	if err := bus.Publish(t.Context(), encode(t, all...)...); err != nil {
		t.Fatal(err)
	}
	f := NewFollower()
	follow(t, f, bus)
	server, _ := serve(t, f)

	browser.open(server.URL())
	browser.until(`document.getElementById('rewarded').textContent === '1'`)
	hidden := `[...document.querySelectorAll('#training figure')].filter((e) => e.hidden).map((e) => e.querySelector('.chart').dataset.chart).join(' ')`
	browser.until(fmt.Sprintf(`%s === 'shadow_code shadow_test shadow_differs pass finding tests breaking changes book mismatch'`, hidden))
	if got := browser.eval(`[...document.querySelectorAll('#training .tiles dl')].filter((e) => !e.hidden).map((e) => e.querySelector('dd').id).join(' ')`); got != "reward_code rewarded dropped events_per_second" {
		t.Errorf("the page shows the figures %v", got)
	}
	browser.eval(`location.hash = '#/group/` + plan.GroupID() + `'`)
	browser.until(`document.querySelector('.answer') !== null`)
	text := browser.eval(`document.getElementById('group_body').textContent`).(string)
	for _, want := range []string{"B602 in line 1: severity high, confidence high", "Reward recipe secure. Judged by bandit 1.9."} {
		if !strings.Contains(text, want) {
			t.Errorf("the group does not say %q: %s", want, text)
		}
	}
	if strings.Contains(text, "Test LLM version") {
		t.Error("the group has a version of a model that the run does not have")
	}
}
