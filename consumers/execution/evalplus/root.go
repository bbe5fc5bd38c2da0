package evalplus

import (
	"math"
	"strings"

	"codea1/consumers/execution/literal"
)

// anyRoot reports whether a task asks for a root of a polynomial. Any root counts.
func (t *Task) anyRoot() bool {
	return strings.HasPrefix(t.ID, humanEval) && t.EntryPoint == "find_zero"
}

// rootOf returns a function that reports whether the polynomial with the given coefficients
// is within a tolerance of 0 at a value. It counts with floats, as EvalPlus does.
func rootOf(given literal.Tuple, atol float64) func(literal.Value) bool {
	var coefficients []float64
	if list, ok := given[0].(literal.List); ok {
		for _, v := range list {
			c, _ := literal.Real(v)
			coefficients = append(coefficients, c)
		}
	}
	return func(v literal.Value) bool {
		x, ok := literal.Real(v)
		sum := 0.0
		for i, c := range coefficients {
			sum += c * math.Pow(x, float64(i))
		}
		return ok && math.Abs(sum) <= atol
	}
}
