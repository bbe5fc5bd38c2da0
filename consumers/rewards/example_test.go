package rewards_test

import (
	"fmt"

	"codea1/consumers/rewards"
	"codea1/events"
)

// A group of two answers with one suite each: the first answer passes its test,
// the second fails its own.
func ExampleScore() {
	suite := func(call, expected string, v events.Verdict) []events.ExecutedSuite {
		return []events.ExecutedSuite{{Chars: 40, Tests: []events.ExecutedTest{
			{Status: events.StatusKept, Call: call, Expected: expected, Verdict: v},
		}}}
	}
	group := &events.CodeExecuted{
		Plan:      events.Plan{Purpose: events.PurposeTrain, Step: 1, Groups: 1, Answers: 2, Suites: 1, Tests: 1, Temperature: 1},
		ProblemID: "absolute-value",
		Answers: []events.ExecutedAnswer{
			{Loads: true, Suites: suite("solve(3)", "3", events.VerdictPass)},
			{Loads: true, Suites: suite("solve(-3)", "3", events.VerdictFail)},
		},
	}
	recipe, err := rewards.New(rewards.NameA1, rewards.DefaultAlpha)
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := rewards.Score(recipe, group)
	if err != nil {
		fmt.Println(err)
		return
	}
	for m := range out.Code {
		fmt.Printf("answer %d: code %.2f, test %.2f\n", m, out.Code[m].Reward, out.Test[m][0].Reward)
	}
	fmt.Println("remembered:", out.Deltas[0].Call)
	// Output:
	// answer 0: code 1.00, test 0.50
	// answer 1: code 0.00, test 1.00
	// remembered: solve(-3)
}
