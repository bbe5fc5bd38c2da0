package rewards

// DefaultAlpha gives validity and the adversarial term the same weight, as in
// the paper.
const DefaultAlpha = 0.5

// A1 returns the adversarial reward of Code-A1 (arXiv 2603.15611). The Code LLM
// earns the share of tests that its answer passes. The Test LLM earns alpha
// times the validity of its suite plus 1-alpha times the adversarial term: the
// failures of the answer on the suite, compared with its failures on the
// historical tests.
func A1(alpha float64) Formula {
	f := PaperFormula()
	f.Recipe, f.GroupRules.Alpha = NameA1, alpha
	f.Validity, f.Adversarial = alpha, 1-alpha
	return f
}

// PaperFormula returns the formula of Code-A1 with DefaultAlpha.
func PaperFormula() Formula {
	return Formula{
		Validity: DefaultAlpha, Adversarial: 1 - DefaultAlpha, Unprintable: 1,
		AgainstHistorical: true, HistoricalShare: 0.5, GroupRules: paperRules,
	}
}
