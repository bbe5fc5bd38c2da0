package rewards

import (
	"errors"

	"codea1/events"
)

// ErrNoGolden is returned for an answer without verdicts of golden tests.
var ErrNoGolden = errors.New("no golden test was run on the answer")

// Golden is the paper's Golden Tests baseline: an answer earns the share of
// the problem's golden tests that it passes, and no Test LLM is trained.
type Golden struct{}

// Name implements Recipe.
func (Golden) Name() string { return NameGolden }

// Rules implements Recipe.
func (Golden) Rules() Rules { return Rules{Advantage: AdvantageStd, Golden: true} }

// Suite reports the counts of a suite, with a reward of 0.
func (Golden) Suite(_ *events.Plan, _ *events.ExecutedAnswer, suite *events.ExecutedSuite) events.SuiteReward {
	kept, wrong, discarded := suite.Counts()
	return events.SuiteReward{Valid: kept, Invalid: wrong + discarded}
}

// Answer returns the golden pass rate; 0 for an answer that does not load.
func (Golden) Answer(answer *events.ExecutedAnswer, _ []events.SuiteReward) (float64, error) {
	if !answer.Loads {
		return 0, nil
	}
	return goldenRate(answer)
}

// goldenRate returns the share of the golden tests that an answer passes.
func goldenRate(answer *events.ExecutedAnswer) (float64, error) {
	if len(answer.Golden) == 0 {
		return 0, ErrNoGolden
	}
	passed := 0
	for i := range answer.Golden {
		if answer.Golden[i].Verdict == events.VerdictPass {
			passed++
		}
	}
	return ratio(passed, len(answer.Golden)), nil
}
