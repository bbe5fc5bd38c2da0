package rewards

import (
	"errors"
	"fmt"
	"slices"

	"codea1/events"
)

var (
	// ErrAllMasked is returned for a group without an answer to reward: all were
	// lost to infrastructure failures.
	ErrAllMasked = errors.New("every answer is masked by an infrastructure failure")
	// ErrNoTestsWanted is returned for a plan of suites with 0 tests. R_val
	// divides by the number of tests wanted.
	ErrNoTestsWanted = errors.New("the plan has suites of 0 tests; it must ask for 1 test or more")
)

// Score rewards a group under a recipe. The result holds the M rewards of the
// answers and the M x N rewards of the suites with their advantages, the answer
// that the Test LLM learns from, and the changes of the Mistake Book. Score is
// pure: equal groups give equal results. The group must pass
// events.CodeExecuted.Validate.
func Score(recipe Formula, group *events.CodeExecuted) (*events.GroupRewarded, error) {
	plan := &group.Plan
	if plan.Suites > 0 && plan.Tests < 1 {
		return nil, ErrNoTestsWanted
	}
	rules := recipe.Rules()
	out := &events.GroupRewarded{
		Plan: *plan, ProblemID: group.ProblemID, CodeVersion: group.CodeVersion, TestVersion: group.TestVersion,
		Recipe: recipe.Name(), Alpha: rules.Alpha, TopVar: -1,
		Code: make([]events.AnswerReward, plan.Answers),
		Test: make([][]events.SuiteReward, plan.Answers),
	}
	masked := 0
	for m := range group.Answers {
		answer := &group.Answers[m]
		out.Test[m] = scoreSuites(recipe, plan, answer)
		reward, err := scoreAnswer(recipe, &rules, plan, answer, out.Test[m])
		if err != nil {
			return nil, fmt.Errorf("answer %d: %w", m, err)
		}
		out.Code[m] = reward
		if reward.Masked {
			masked++
		}
	}
	if masked == len(group.Answers) {
		return nil, ErrAllMasked
	}
	rules.setAdvantages(out)
	if rules.TrainsTest {
		out.TopVar = rules.choose(out.Test)
		out.Deltas = rules.deltas(group)
	}
	return out, nil
}

func scoreSuites(recipe Formula, plan *events.Plan, answer *events.ExecutedAnswer) []events.SuiteReward {
	out := make([]events.SuiteReward, plan.Suites)
	for n := range out {
		if answer.Failure != "" || answer.Suites[n].Failure != "" {
			out[n].Masked = true
			continue
		}
		out[n] = recipe.Suite(plan, answer, &answer.Suites[n])
	}
	return out
}

func scoreAnswer(recipe Formula, rules *Rules, plan *events.Plan, answer *events.ExecutedAnswer, suites []events.SuiteReward) (events.AnswerReward, error) {
	if answer.Failure != "" {
		return events.AnswerReward{Masked: true}, nil
	}
	scored := slices.DeleteFunc(slices.Clone(suites), func(s events.SuiteReward) bool { return s.Masked })
	// An answer that lost all its suites has no measurement. An answer that does
	// not load has a reward of 0 without any.
	if rules.TrainsTest && answer.Loads && plan.Suites > 0 && len(scored) == 0 {
		return events.AnswerReward{Loads: true, Masked: true}, nil
	}
	reward, err := recipe.Answer(answer, scored)
	return events.AnswerReward{Reward: reward, Loads: answer.Loads}, err
}
