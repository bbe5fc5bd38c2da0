package rewards

// SelfPlay returns the reward of the Self-Play baseline of Code-A1 (arXiv
// 2603.15611). One model writes both answers and tests. It does not see the
// answer when it writes tests for it, because it could then agree with itself.
// The model is rewarded in both roles by the terms of A1. (The paper's
// repository has no program for the baseline and the paper has no formula. That
// the terms are those of A1 is our interpretation.)
//
// The difference to A1 follows from the missing answer in the prompt. All M x N
// suites of a group answer the same prompt, so they are one set: the advantage
// of a suite is relative to all suites of its group, not to the N suites of its
// answer. Suites of answers that do not load are left out of this comparison
// and have advantage 0.
//
// A recipe only rewards. A training with it has one model and prompts without the
// answer (events.ModelsShared). Applied to the log of a run with two models it
// computes the rewards that one model without the answer would have had.
func SelfPlay(alpha float64) Formula {
	f := A1(alpha)
	f.Recipe, f.GroupRules.Compare = NameSelfPlay, CompareGroup
	return f
}
