package query

import (
	"fmt"
	"testing"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

// rescoreLog is a log of groups of the paper's size, M = N = K = 8, each with
// its verdicts and its reward.
func rescoreLog(b *testing.B, groups int) *eventlog.Log {
	l := eventlogtest.Open(b, b.TempDir(), eventlog.Options{})
	s := replaytest.NewStory(b)
	for slot := range groups {
		plan := events.Plan{Purpose: events.PurposeTrain, Step: 1, Slot: slot, Groups: groups, Answers: 8, Suites: 8, Tests: 8, Temperature: 1}
		executed := &events.CodeExecuted{Plan: plan, ProblemID: fmt.Sprintf("p%d", slot%50), Answers: make([]events.ExecutedAnswer, 8)}
		for m := range executed.Answers {
			a := &executed.Answers[m]
			a.Loads = true
			for n := range 8 {
				suite := events.ExecutedSuite{Chars: 400}
				for k := range 8 {
					call := fmt.Sprintf("solve([%d, %d, %d], %d)", slot, m, n, k)
					suite.Tests = append(suite.Tests, events.ExecutedTest{
						Source: "assert " + call + " == 1", Status: events.StatusKept, Call: call, Stated: "1", Expected: "1", Verdict: replaytest.Verdict((m+n+k)%3, events.VerdictFail),
					})
				}
				a.Suites = append(a.Suites, suite)
			}
		}
		e := s.Root(plan.GroupID(), executed)
		s.Then(e, replaytest.PassShare(executed, 0.5))
	}
	eventlogtest.Append(b, l, eventlogtest.At(0, s.Messages...))
	return l
}

func BenchmarkRescore(b *testing.B) {
	const groups = 256
	l := rescoreLog(b, groups)
	b.ReportAllocs()
	for b.Loop() {
		_, err := Rescore(b.Context(), l, func(g *events.CodeExecuted) (*events.GroupRewarded, error) { return replaytest.PassShare(g, 0.25), nil }, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(60*groups*float64(b.N)/b.Elapsed().Seconds(), "groups/min")
}
