package rewards

import "codea1/events"

type execVerify struct{}

// Name implements Recipe.
func (execVerify) Name() string { return NameExecVerify }

// Rules implements Recipe.
func (execVerify) Rules() Rules { return Rules{Predict: true, Advantage: AdvantageStd} }

// Reward implements Recipe. It is 0 for an answer with a wrong output or input, and else
//
//	R_code = 1 + share of the right lines about steps
//
// with a share of 1 if no line is about steps.
func (execVerify) Reward(g *Group) error {
	for i := range g.Answers {
		a := &g.Answers[i]
		results, steps, right := true, 0, 0
		for j := range a.Golden {
			pass := a.Golden[j].Verdict == events.VerdictPass
			switch g.Predict[j] {
			case events.PredictNext, events.PredictState:
				steps++
				if pass {
					right++
				}
			default:
				results = results && pass
			}
		}
		switch {
		case !a.Loads || !results:
		case steps == 0:
			a.Reward.Reward = 2
		default:
			a.Reward.Reward = 1 + ratio(right, steps)
		}
	}
	return nil
}
