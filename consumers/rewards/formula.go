package rewards

import (
	"errors"
	"fmt"

	"codea1/events"
)

// ErrFormula is returned for a formula that cannot be read, or that has a term
// no formula can have.
var ErrFormula = errors.New("not a reward formula")

// Formula is a recipe made of the terms of A1 under weights and rules of the
// user's own. PaperFormula is A1 with alpha 0.5; RECIPE.md describes the fields
// one by one. With the terms as A1 defines them, K being Wanted or else the
// plan's:
//
//	R_test = Validity*R_val + Adversarial*R_adv - Unprintable*(share of unprintable characters)
//	R_code = (1-GoldenShare)*(mean of pass over the suites) + GoldenShare*(golden pass rate)
//
// where both new and historical tests are at hand
//
//	pass  = (1-HistoryShare)*pass_new + HistoryShare*pass_hist
//	R_adv = (fail_new - fail_hist + 1)/2, or fail_new unless AgainstHistory
type Formula struct {
	Validity       float64
	Adversarial    float64
	Unprintable    float64
	Wanted         int // 0 for the plan's
	AgainstHistory bool
	HistoryShare   float64
	GoldenShare    float64

	GroupRules Rules // Golden follows from GoldenShare
}

// PaperFormula returns the formula of Code-A1.
func PaperFormula() Formula {
	return Formula{
		Validity: DefaultAlpha, Adversarial: 1 - DefaultAlpha, Unprintable: 1,
		AgainstHistory: true, HistoryShare: 0.5, GroupRules: paperRules,
	}
}

// Validate names the first field with a value that no formula can have.
func (f *Formula) Validate() error {
	for i := range formulaFields {
		field := &formulaFields[i]
		if err := field.check(f); err != nil {
			return err
		}
	}
	return nil
}

// Name implements Recipe. The name holds every field that differs from
// PaperFormula's: New makes the same formula of it again.
func (f Formula) Name() string { return f.name() }

// Weight implements Recipe: a formula has two weights, and they are in its name.
func (Formula) Weight() float64 { return 0 }

// TrainsTest implements Recipe.
func (Formula) TrainsTest() bool { return true }

// Rules implements Recipe.
func (f Formula) Rules() Rules {
	rules := f.GroupRules
	rules.Golden = f.GoldenShare > 0
	return rules
}

// Suite returns R_test of one suite with all its terms. SuiteReward.Penalty is
// what unprintable characters cost, weight included.
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
		out.Pass = f.HistoryShare*out.PassHist + (1-f.HistoryShare)*out.PassNew
		if !f.AgainstHistory {
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
