package rewards

import (
	"errors"
	"fmt"

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
// events.CodeExecuted.Validate. A group that lacks a field the recipe needs has
// no rewards: the error names the field.
func Score(recipe Recipe, group *events.CodeExecuted) (*events.GroupRewarded, error) {
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
	view, err := rules.view(group, out)
	if errors.Is(err, ErrAllMasked) {
		return nil, err
	}
	if err == nil {
		err = recipe.Reward(view)
	}
	if err != nil {
		return nil, fmt.Errorf("recipe %s: %w", recipe.Name(), err)
	}
	rules.setAdvantages(out)
	if rules.TrainsTest {
		if !view.LeaveTests {
			out.TopVar = rules.choose(out.Test)
		}
		out.Deltas = rules.deltas(group)
	}
	return out, nil
}
