package rewards

import (
	"math"

	"codea1/events"
)

// tieTolerance is how close two deviations or means count as equal. Sums of the same
// rewards in another order differ in the last bits, and a tie must go to the
// first answer, not to rounding. Distinct rewards differ by far more.
const tieTolerance = 1e-9

// TopVar returns the answer whose suites teach the Test LLM most: the one
// whose suite rewards have the largest population standard deviation, the
// first on ties (design step 8). Masked suites do not count, and an answer
// without any other suite is not eligible; -1 if none is.
func TopVar(suites [][]events.SuiteReward) int {
	return most(suites, func(rewards []float64) float64 {
		_, squares := moments(rewards)
		return math.Sqrt(squares / float64(len(rewards)))
	})
}

// TopMean returns the answer whose suites have earned most on average, with
// TopVar's rules for ties and masked suites.
func TopMean(suites [][]events.SuiteReward) int {
	return most(suites, func(rewards []float64) float64 {
		mean, _ := moments(rewards)
		return mean
	})
}

// most returns the answer whose unmasked suites are worth most, the first on
// ties, -1 where there are none.
func most(suites [][]events.SuiteReward, worth func(rewards []float64) float64) int {
	best, bestWorth := -1, 0.0
	for m := range suites {
		_, rewards := unmasked(suites[m])
		if len(rewards) == 0 {
			continue
		}
		if w := worth(rewards); best < 0 || w > bestWorth+tieTolerance {
			best, bestWorth = m, w
		}
	}
	return best
}
