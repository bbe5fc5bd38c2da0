package rewards

import (
	"errors"

	"codea1/events"
)

// ErrNoGolden is returned for an answer without verdicts of golden tests.
var ErrNoGolden = errors.New("no golden test was run on the answer")

// Golden returns the paper's Golden Tests baseline: an answer earns the share of
// the problem's golden tests that it passes, and no Test LLM is trained.
func Golden() Formula {
	return Formula{Recipe: NameGolden, GoldenShare: 1, GroupRules: Rules{Advantage: AdvantageStd}}
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
