package rewards

import (
	"math"

	"codea1/events"
)

// tieTolerance is the distance below which two deviations or means are equal.
// Sums of the same rewards in another order differ in the last bits, and
// rounding must not decide a tie. Distinct rewards differ by far more.
const tieTolerance = 1e-9

// TopVar returns the answer with the largest population standard deviation of
// its suite rewards, the first of equal ones. Masked suites do not count. An
// answer with only masked suites cannot be chosen; -1 if no answer can.
func TopVar(suites [][]events.SuiteReward) int {
	return most(suites, func(rewards []float64) float64 {
		_, squares := moments(rewards)
		return math.Sqrt(squares / float64(len(rewards)))
	})
}

// TopMean returns the answer with the largest mean of its suite rewards, under
// TopVar's rules for ties and masked suites.
func TopMean(suites [][]events.SuiteReward) int {
	return most(suites, func(rewards []float64) float64 {
		mean, _ := moments(rewards)
		return mean
	})
}

// most returns the answer with the largest value of its unmasked rewards, the
// first of equal ones, -1 if all suites are masked.
func most(suites [][]events.SuiteReward, value func(rewards []float64) float64) int {
	best, largest := -1, 0.0
	for m := range suites {
		_, rewards := unmasked(suites[m])
		if len(rewards) == 0 {
			continue
		}
		if v := value(rewards); best < 0 || v > largest+tieTolerance {
			best, largest = m, v
		}
	}
	return best
}
