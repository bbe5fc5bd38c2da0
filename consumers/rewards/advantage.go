package rewards

import (
	"math"
	"slices"

	"codea1/events"
)

// advantageEpsilon keeps the advantage finite where all rewards are equal.
const advantageEpsilon = 1e-6

// Advantages returns the group-relative advantage of each reward (GRPO):
//
//	(r - mean) / (std + 1e-6)
//
// with the sample standard deviation (n-1). A single reward cannot be compared;
// its advantage is the reward itself.
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

// Centred returns r - mean for each reward. Without the division by the
// deviation, a set of nearly equal rewards has smaller advantages than a set of
// very different ones (Dr. GRPO, arXiv 2503.20783). The advantage of a single
// reward is the reward itself, as in Advantages.
func Centred(rewards []float64) []float64 {
	out := slices.Clone(rewards)
	if len(rewards) > 1 {
		mean, _ := moments(rewards)
		for i := range out {
			out[i] -= mean
		}
	}
	return out
}

// Standardised returns (r - mean) / std with the population standard deviation (n),
// and 0 where all rewards are equal. The advantage of a single reward is the reward
// itself, as in Advantages.
func Standardised(rewards []float64) []float64 {
	out := Centred(rewards)
	_, squares := moments(rewards)
	std := math.Sqrt(squares / float64(max(1, len(rewards))))
	for i := range out {
		switch {
		case len(out) == 1:
		case std <= tieTolerance:
			out[i] = 0
		default:
			out[i] /= std
		}
	}
	return out
}

// unmasked returns the suites that are not masked, and their rewards.
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
