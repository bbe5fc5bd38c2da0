package rewards

import (
	"math"

	"codea1/events"
)

// tieTolerance is how close two deviations count as equal. Sums of the same
// rewards in another order differ in the last bits, and a tie must go to the
// first answer, not to rounding. Distinct rewards differ by far more.
const tieTolerance = 1e-9

// TopVar returns the answer whose suites teach the Test LLM most: the one
// whose suite rewards have the largest population standard deviation, the
// first on ties (design step 8). Masked suites do not count, and an answer
// without any other suite is not eligible; -1 if none is.
func TopVar(suites [][]events.SuiteReward) int {
	best, bestStd := -1, 0.0
	for m := range suites {
		_, rewards := unmasked(suites[m])
		if len(rewards) == 0 {
			continue
		}
		_, squares := moments(rewards)
		std := math.Sqrt(squares / float64(len(rewards)))
		if best < 0 || std > bestStd+tieTolerance {
			best, bestStd = m, std
		}
	}
	return best
}
