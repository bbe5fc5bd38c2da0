package events

import (
	"fmt"
	"testing"
)

// largePayloads are payloads of a group of the paper's shape: 8 answers, 8
// suites for each, 8 tests in each.
func largePayloads() []Payload {
	posed := samplePosed()
	posed.Plan.Answers, posed.Plan.Suites, posed.Plan.Tests = 8, 8, 8
	completion := rolloutEvent().Payload.(*CodeSampled).Answers[0]
	sampled := &TestsSampled{Posed: posed}
	executed := &CodeExecuted{Plan: posed.Plan, ProblemID: "p"}
	rewarded := &GroupRewarded{Plan: posed.Plan, ProblemID: "p", Recipe: "a1"}
	for m := range 8 {
		sampled.Codes, sampled.Prompts = append(sampled.Codes, completion.Text), append(sampled.Prompts, completion.Tokens)
		sampled.Suites = append(sampled.Suites, nil)
		answer := ExecutedAnswer{Loads: true}
		for n := range 8 {
			sampled.Suites[m] = append(sampled.Suites[m], completion)
			suite := ExecutedSuite{Chars: len(completion.Text)}
			for k := range 8 {
				call, value := fmt.Sprintf("merge([[%d, %d], [%d, %d]])", m, n, k, m*n), fmt.Sprintf("[[%d, %d]]", m, k)
				suite.Tests = append(suite.Tests, ExecutedTest{
					Source: "assert " + call + " == " + value, Status: StatusKept, Call: call, Stated: value, Expected: value, Verdict: VerdictPass,
				})
			}
			answer.Suites = append(answer.Suites, suite)
		}
		executed.Answers = append(executed.Answers, answer)
		rewarded.Code = append(rewarded.Code, AnswerReward{Reward: 0.5, Advantage: 1, Loads: true})
		rewarded.Test = append(rewarded.Test, make([]SuiteReward, 8))
	}
	return []Payload{sampled, executed, rewarded}
}

func BenchmarkCoder(b *testing.B) {
	for _, p := range largePayloads() {
		raw, err := marshal(p)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("write "+string(p.EventType()), func(b *testing.B) {
			for b.Loop() {
				if err := withMsgpack(p, func([]byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("read "+string(p.EventType()), func(b *testing.B) {
			m := messageOf(p.EventType(), raw)
			for b.Loop() {
				if _, err := m.decodeRaw(raw, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
