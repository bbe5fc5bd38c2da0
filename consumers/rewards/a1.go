package rewards

import "codea1/events"

// A1 is the adversarial reward of Code-A1 (arXiv 2603.15611). The Code LLM
// earns the share of tests that its answer passes. The Test LLM earns Alpha
// times the validity of its suite plus 1-Alpha times the adversarial term: the
// failures of the answer on the suite, compared with its failures on the
// historical tests.
type A1 struct {
	Alpha float64 // within [0, 1]
}

// Name implements Recipe.
func (A1) Name() string { return NameA1 }

// Rules implements Recipe.
func (r A1) Rules() Rules {
	rules := paperRules
	rules.Alpha = r.Alpha
	return rules
}

// Suite returns R_test of one suite with all its terms. K is the number of
// tests wanted, valid the number of kept tests, and invalid the number of
// discarded tests plus the kept ones that are wrong as stated:
//
//	R_val    = clamp(min(valid/K, 1 - invalid/K), 0, 1)
//	fail_new = failures among the first K kept tests / K
//	pass_new = passed / kept, 0 if none is kept
//	pass_hist, fail_hist: passed and failed / historical tests, 0 if there are none
//
//	tests                R_adv                           pass
//	new and historical   (fail_new - fail_hist + 1)/2    (pass_hist + pass_new)/2
//	only new             fail_new                        pass_new
//	only historical      0                               pass_hist
//	neither              0                               0
//
//	R_test = Alpha*R_val + (1-Alpha)*R_adv - Penalty, within [-1, 1]
//
// Penalty is the share of the response's characters outside Python's
// string.printable. On an answer that does not load, R_test is -Penalty: the
// suite earns nothing for a program that is already broken. R_val and the
// counts are still reported, because they come from the ground truth alone. All
// other terms are 0.
//
// On an answer that loads, a kept test has no verdict if the job ran out of
// time before it. Such a test is neither passed nor failed.
func (r A1) Suite(plan *events.Plan, answer *events.ExecutedAnswer, suite *events.ExecutedSuite) events.SuiteReward {
	k := float64(plan.Tests)
	kept, wrong, discarded := suite.Counts()
	out := events.SuiteReward{Valid: kept, Invalid: wrong + discarded}
	out.RVal = clamp(min(float64(out.Valid)/k, 1-float64(out.Invalid)/k))
	out.Penalty = ratio(suite.Unprintable, suite.Chars)
	if !answer.Loads {
		out.Reward = 0 - out.Penalty
		return out
	}
	passed, failed := tally(suite.Tests, plan.Tests)
	out.PassNew = ratio(passed, out.Valid)
	out.FailNew = float64(failed) / k
	out.PassHist, out.FailHist = historical(answer.Historical)

	hasNew, hasHist := out.Valid > 0, len(answer.Historical) > 0
	switch {
	case hasNew && hasHist:
		out.RAdv = (out.FailNew - out.FailHist + 1) / 2
		out.Pass = (out.PassHist + out.PassNew) / 2
	case hasNew:
		out.RAdv = out.FailNew
		out.Pass = out.PassNew
	case hasHist:
		out.Pass = out.PassHist
	}
	out.Reward = r.Alpha*out.RVal + (1-r.Alpha)*out.RAdv - out.Penalty
	return out
}

// Answer returns R_code, the mean of pass over the answer's suites; 0 for an
// answer that does not load. In a group without suites (N = 0) the reward is
// pass_hist.
func (A1) Answer(answer *events.ExecutedAnswer, suites []events.SuiteReward) (float64, error) {
	if !answer.Loads {
		return 0, nil
	}
	if len(suites) == 0 {
		pass, _ := historical(answer.Historical)
		return pass, nil
	}
	sum := 0.0
	for i := range suites {
		sum += suites[i].Pass
	}
	return sum / float64(len(suites)), nil
}

// tally counts the kept tests that passed, and the failures among the first k
// kept tests. A suite with more than k tests must not earn more.
func tally(tests []events.ExecutedTest, k int) (passed, failed int) {
	kept := 0
	for i := range tests {
		t := &tests[i]
		if t.Status != events.StatusKept {
			continue
		}
		kept++
		if t.Verdict == events.VerdictPass {
			passed++
		}
		if t.Verdict.Failed() && kept <= k {
			failed++
		}
	}
	return passed, failed
}

// historical returns pass_hist and fail_hist.
func historical(verdicts []events.Verdict) (pass, fail float64) {
	passed, failed := 0, 0
	for _, v := range verdicts {
		if v == events.VerdictPass {
			passed++
		}
		if v.Failed() {
			failed++
		}
	}
	return ratio(passed, len(verdicts)), ratio(failed, len(verdicts))
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func clamp(x float64) float64 { return max(0, min(1, x)) }
