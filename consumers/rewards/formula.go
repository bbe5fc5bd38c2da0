package rewards

import (
	"errors"
	"fmt"

	"codea1/events"
)

// ErrFormula is returned for a formula that cannot be read, or that has a value
// outside its bounds.
var ErrFormula = errors.New("not a reward formula")

// Formula is a recipe made of the terms of A1 with weights and rules that the
// user sets. PaperFormula is A1 with alpha 0.5. RECIPE.md describes the fields.
// The terms are those of A1, and K is Wanted, or the plan's if Wanted is 0:
//
//	R_test = Validity*R_val + Adversarial*R_adv - Unprintable*(share of unprintable characters)
//	R_code = (1-GoldenShare)*(mean of pass over the suites) + GoldenShare*(golden pass rate)
//
// With both new and historical tests
//
//	pass  = (1-HistoricalShare)*pass_new + HistoricalShare*pass_hist
//	R_adv = (fail_new - fail_hist + 1)/2, or fail_new unless AgainstHistorical
type Formula struct {
	Validity          float64
	Adversarial       float64
	Unprintable       float64
	Wanted            int // 0 for the plan's
	AgainstHistorical bool
	HistoricalShare   float64
	GoldenShare       float64

	GroupRules Rules // Golden follows from GoldenShare
}

// PaperFormula returns the formula of Code-A1.
func PaperFormula() Formula {
	return Formula{
		Validity: DefaultAlpha, Adversarial: 1 - DefaultAlpha, Unprintable: 1,
		AgainstHistorical: true, HistoricalShare: 0.5, GroupRules: paperRules,
	}
}

// Name implements Recipe. The name holds every field that differs from
// PaperFormula's: New makes the same formula of it again.
func (f Formula) Name() string { return f.name() }

// Rules implements Recipe. Alpha is 0, because the name holds both weights of a
// formula.
func (f Formula) Rules() Rules {
	rules := f.GroupRules
	rules.Golden = f.GoldenShare > 0
	return rules
}

// Suite returns R_test of one suite with all its terms. SuiteReward.Penalty
// includes the weight Unprintable.
func (f Formula) Suite(plan *events.Plan, answer *events.ExecutedAnswer, suite *events.ExecutedSuite) events.SuiteReward {
	if f.Wanted > 0 {
		wanted := *plan
		wanted.Tests = f.Wanted
		plan = &wanted
	}
	out := A1{}.Suite(plan, answer, suite)
	out.Penalty *= f.Unprintable
	if !answer.Loads {
		out.Reward = 0 - out.Penalty
		return out
	}
	if out.Valid > 0 && len(answer.Historical) > 0 {
		out.Pass = f.HistoricalShare*out.PassHist + (1-f.HistoricalShare)*out.PassNew
		if !f.AgainstHistorical {
			out.RAdv = out.FailNew
		}
	}
	out.Reward = f.Validity*out.RVal + f.Adversarial*out.RAdv - out.Penalty
	return out
}

// Answer returns R_code; 0 for an answer that does not load.
func (f Formula) Answer(answer *events.ExecutedAnswer, suites []events.SuiteReward) (float64, error) {
	reward, err := A1{}.Answer(answer, suites)
	if err != nil || f.GoldenShare == 0 || !answer.Loads {
		return reward, err
	}
	golden, err := goldenRate(answer)
	if err != nil {
		return 0, fmt.Errorf("%s is %v: %w", fieldGoldenShare, f.GoldenShare, err)
	}
	return (1-f.GoldenShare)*reward + f.GoldenShare*golden, nil
}
