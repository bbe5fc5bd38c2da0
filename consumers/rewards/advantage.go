package rewards

import (
	"math"

	"codea1/events"
)

// advantageEpsilon keeps the advantage finite where all rewards are equal.
const advantageEpsilon = 1e-6

// Advantages returns the group-relative advantage of each reward, in reward
// units of one standard deviation (design step 9, GRPO):
//
//	(r - mean) / (std + 1e-6)
//
// with the sample standard deviation (n-1). A group of one has nothing to be
// compared with, and advantage r.
func Advantages(rewards []float64) []float64 {
	out := make([]float64, len(rewards))
	if len(rewards) == 1 {
		out[0] = rewards[0]
		return out
	}
	mean, squares := moments(rewards)
	std := math.Sqrt(squares / float64(len(rewards)-1))
	for i, r := range rewards {
		out[i] = (r - mean) / (std + advantageEpsilon)
	}
	return out
}

// setAdvantages compares the answers of a group with each other, and the
// suites of an answer with each other. What is masked keeps advantage 0 and is
// as if it had never been in its group.
func setAdvantages(g *events.GroupRewarded) {
	var scored []*events.AnswerReward
	var rewards []float64
	for m := range g.Code {
		if !g.Code[m].Masked {
			scored = append(scored, &g.Code[m])
			rewards = append(rewards, g.Code[m].Reward)
		}
	}
	for i, a := range Advantages(rewards) {
		scored[i].Advantage = a
	}
	for m := range g.Test {
		scored, rewards := unmasked(g.Test[m])
		for i, a := range Advantages(rewards) {
			scored[i].Advantage = a
		}
	}
}

func unmasked(suites []events.SuiteReward) (scored []*events.SuiteReward, rewards []float64) {
	for n := range suites {
		if !suites[n].Masked {
			scored = append(scored, &suites[n])
			rewards = append(rewards, suites[n].Reward)
		}
	}
	return scored, rewards
}

// moments returns the mean and the sum of squared distances from it.
func moments(values []float64) (mean, squares float64) {
	if len(values) == 0 {
		return 0, 0
	}
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, squares
}
