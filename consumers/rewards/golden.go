package rewards

import "codea1/events"

// Golden returns the paper's Golden Tests baseline: an answer earns the share of
// the problem's golden tests that it passes, and no Test LLM is trained.
func Golden() Formula {
	return Formula{Recipe: NameGolden, GoldenShare: 1, GroupRules: Rules{Advantage: AdvantageStd}}
}

// goldenRate returns the share of the golden tests that an answer passes.
func goldenRate(answer *events.ExecutedAnswer) float64 {
	passed := 0
	for i := range answer.Golden {
		if answer.Golden[i].Verdict == events.VerdictPass {
			passed++
		}
	}
	return ratio(passed, len(answer.Golden))
}
