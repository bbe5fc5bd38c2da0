package rewards

import (
	"math"

	"codea1/events"
)

// The parameters of secure, which are ours.
const (
	secureShortest = -0.5 // relative difference in lines to the ground truth
	secureLongest  = 0.5
	secureLength   = 0.5 // factor outside of them
)

// findingWeights are subtracted from the safety for a finding of each severity. They are
// ours.
var findingWeights = map[string]float64{events.SeverityLow: 0.1, events.SeverityMedium: 0.5, events.SeverityHigh: 1}

type secure struct{}

// Name implements Recipe.
func (secure) Name() string { return NameSecure }

// Rules implements Recipe.
func (secure) Rules() Rules {
	return Rules{Golden: true, Judge: events.JudgeFindings, Advantage: AdvantageStd}
}

// Reward implements Recipe:
//
//	R_code = pass safety length
//
// pass is the share of the golden tests that the answer passes, safety is 1 less the weights
// of its findings and at least 0, and length is 1/2 if the answer is more than half longer
// or shorter than the ground truth, else 1.
func (secure) Reward(g *Group) error {
	for i := range g.Answers {
		a := &g.Answers[i]
		if !a.Loads {
			continue
		}
		a.Reward.Reward = goldenRate(a.ExecutedAnswer) * g.secureShare(a)
	}
	return nil
}

// secureShare returns safety length, which is within [0, 1].
func (g *Group) secureShare(a *Answer) float64 {
	length := 1.0
	if d := g.lengthDifference(a); d < secureShortest || d > secureLongest {
		length = secureLength
	}
	return safety(a.Judgement.Findings) * length
}

// secureA1 is secure in a run with a Test LLM, without golden tests.
type secureA1 struct{ Formula }

// Name implements Recipe.
func (secureA1) Name() string { return NameSecureA1 }

// Rules implements Recipe.
func (r secureA1) Rules() Rules {
	rules := r.Formula.Rules()
	rules.Judge = events.JudgeFindings
	return rules
}

// Reward implements Recipe. Suites have their rewards under A1, and
//
//	R_code = pass safety length
//
// pass is the answer's reward under A1, safety and length are those of secure.
func (r secureA1) Reward(g *Group) error {
	if err := r.Formula.Reward(g); err != nil {
		return err
	}
	for i := range g.Answers {
		if a := &g.Answers[i]; a.Loads {
			a.Reward.Reward *= g.secureShare(a)
		}
	}
	return nil
}

// safety returns 1 less the weights of the findings, at least 0.
func safety(findings []events.Finding) float64 {
	weight := 0.0
	for _, f := range findings {
		weight += findingWeights[f.Severity]
	}
	return max(0, 1-weight)
}

// lengthDifference returns how much longer an answer is than the ground truth, in lines and
// relative to the ground truth.
func (g *Group) lengthDifference(a *Answer) float64 {
	return float64(a.Judgement.Lines-g.Judged.Lines) / float64(max(1, g.Judged.Lines))
}

type secCoderX struct{}

// Name implements Recipe.
func (secCoderX) Name() string { return NameSecCoderX }

// Rules implements Recipe.
func (secCoderX) Rules() Rules {
	return Rules{Golden: true, Judge: events.JudgeVerdict, Advantage: AdvantageStd}
}

// Reward implements Recipe. The terms and their values are the authors', except f:
//
//	R_code = format + s + l + l s + l s f
//
// format is 1 if the response has a code block, s is 2 if the judge finds no vulnerability,
// l is the length term, and f the share of the golden tests that the answer passes.
func (secCoderX) Reward(g *Group) error {
	for i := range g.Answers {
		a := &g.Answers[i]
		if !a.Loads {
			continue
		}
		format, safe := 0.0, 0.0
		if a.Judgement.Blocks > 0 {
			format = 1
		}
		if a.Judgement.Safe {
			safe = 2
		}
		length := lengthTerm(g.lengthDifference(a))
		a.Reward.Reward = format + safe + length + length*safe + length*safe*goldenRate(a.ExecutedAnswer)
	}
	return nil
}

// lengthTerm returns the authors' reward of a relative difference in lines.
func lengthTerm(difference float64) float64 {
	switch {
	case difference < -0.5:
		return -2
	case difference <= -0.3:
		return -0.5
	case difference <= 0.5:
		return 1
	}
	return 0
}

type codeScaler struct{}

// Name implements Recipe.
func (codeScaler) Name() string { return NameCodeScaler }

// Rules implements Recipe.
func (codeScaler) Rules() Rules { return Rules{Judge: events.JudgeScore, Advantage: AdvantageStd} }

// Reward implements Recipe:
//
//	R_code = ln(1 + exp(score))
//	R_code = 0 unless the response has exactly one code block, and its code parses
func (codeScaler) Reward(g *Group) error {
	for i := range g.Answers {
		a := &g.Answers[i]
		if a.Loads && a.Judgement.Blocks == 1 && a.Judgement.Parses {
			a.Reward.Reward = softplus(a.Judgement.Score)
		}
	}
	return nil
}

// softplus returns ln(1 + exp(x)) without an overflow and without a loss for small x.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
