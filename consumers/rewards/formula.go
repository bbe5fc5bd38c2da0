package rewards

import (
	"cmp"
	"errors"

	"codea1/events"
)

// ErrFormula is returned for a formula that cannot be read, or that has a value
// outside its bounds.
var ErrFormula = errors.New("not a reward formula")

// Formula is one way to reward a group: weights of the terms of Suite and
// Answer, and rules for the rewards of the whole group. RECIPE.md describes the
// fields that a user sets.
type Formula struct {
	Validity          float64
	Adversarial       float64
	Unprintable       float64
	Wanted            int // 0 for the plan's
	AgainstHistorical bool
	HistoricalShare   float64
	GoldenShare       float64

	GroupRules Rules  // Golden follows from GoldenShare
	Recipe     string // one of Names; empty for a formula of the user
}

// Name identifies the formula in group.rewarded and in configurations. For a
// formula of the user, it holds every field that differs from PaperFormula's:
// New makes the same formula of it again.
func (f Formula) Name() string { return cmp.Or(f.Recipe, f.fields()) }

// Rules returns the decisions about the rewards of a whole group.
func (f Formula) Rules() Rules {
	rules := f.GroupRules
	rules.Golden = f.GoldenShare > 0
	return rules
}

// Reward implements Recipe.
func (f Formula) Reward(g *Group) error {
	for m := range g.Answers {
		a := &g.Answers[m]
		for n := range a.Suites {
			*a.Suites[n].Reward = f.Suite(&g.Plan, a.ExecutedAnswer, a.Suites[n].ExecutedSuite)
		}
		a.Reward.Reward = f.Answer(a)
	}
	return nil
}

// Suite returns R_test of one suite with all its terms. It leaves Advantage and
// Masked unset. K is Wanted, or the plan's number of tests if Wanted is 0. valid
// is the number of kept tests, and invalid the number of discarded tests plus
// the kept ones that are wrong as stated:
//
//	R_val    = clamp(min(valid/K, 1 - invalid/K), 0, 1)
//	fail_new = failures among the first K kept tests / K
//	pass_new = passed / kept, 0 if none is kept
//	pass_hist, fail_hist: passed and failed / historical tests, 0 if there are none
//
//	tests                R_adv                           pass
//	new and historical   (fail_new - fail_hist + 1)/2    h*pass_hist + (1-h)*pass_new
//	only new             fail_new                        pass_new
//	only historical      0                               pass_hist
//	neither              0                               0
//
//	R_test = Validity*R_val + Adversarial*R_adv - Penalty
//
// h is HistoricalShare. Unless AgainstHistorical, R_adv is fail_new also with
// historical tests. Penalty is Unprintable times the share of the response's
// characters outside Python's string.printable. On an answer that does not load,
// R_test is -Penalty: the suite earns nothing for a program that is already
// broken. R_val and the counts are still reported, because they come from the
// ground truth alone. All other terms are 0. Without a Test LLM to train, only
// the counts are reported.
//
// On an answer that loads, a kept test has no verdict if the job ran out of
// time before it. Such a test is neither passed nor failed.
func (f Formula) Suite(plan *events.Plan, answer *events.ExecutedAnswer, suite *events.ExecutedSuite) events.SuiteReward {
	kept, wrong, discarded := suite.Counts()
	out := events.SuiteReward{Valid: kept, Invalid: wrong + discarded}
	if !f.GroupRules.TrainsTest {
		return out
	}
	wanted := cmp.Or(f.Wanted, plan.Tests)
	k := float64(wanted)
	out.RVal = clamp(min(float64(out.Valid)/k, 1-float64(out.Invalid)/k))
	out.Penalty = f.Unprintable * ratio(suite.Unprintable, suite.Chars)
	if !answer.Loads {
		out.Reward = 0 - out.Penalty
		return out
	}
	passed, failed := tally(suite.Tests, wanted)
	out.PassNew = ratio(passed, out.Valid)
	out.FailNew = float64(failed) / k
	out.PassHist, out.FailHist = historical(answer.Historical)

	out.RAdv = out.FailNew // 0 without new tests
	hasNew, hasHist := out.Valid > 0, len(answer.Historical) > 0
	switch {
	case hasNew && hasHist:
		if f.AgainstHistorical {
			out.RAdv = (out.FailNew - out.FailHist + 1) / 2
		}
		out.Pass = f.HistoricalShare*out.PassHist + (1-f.HistoricalShare)*out.PassNew
	case hasNew:
		out.Pass = out.PassNew
	case hasHist:
		out.Pass = out.PassHist
	}
	out.Reward = f.Validity*out.RVal + f.Adversarial*out.RAdv - out.Penalty
	return out
}

// Answer returns R_code of an answer, given the rewards of its suites:
// the mean of pass over the suites, or pass_hist in a group without suites
// (N = 0). GoldenShare of the reward is the golden pass rate instead. An answer
// that does not load earns 0. The reward is within [0, 1].
func (f Formula) Answer(answer *Answer) float64 {
	if !answer.Loads {
		return 0
	}
	reward, _ := historical(answer.Historical)
	if len(answer.Suites) > 0 {
		sum := 0.0
		for i := range answer.Suites {
			sum += answer.Suites[i].Reward.Pass
		}
		reward = sum / float64(len(answer.Suites))
	}
	if f.GoldenShare == 0 {
		return reward
	}
	return (1-f.GoldenShare)*reward + f.GoldenShare*goldenRate(answer.ExecutedAnswer)
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
