package evaluation

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"codea1/events"
)

// runOf returns the figures of a run: a text per problem, 1 for a correct answer.
func runOf(problems ...string) *Figures {
	f := new(Figures)
	for i, text := range problems {
		if text == "" { // the group was dropped
			continue
		}
		e := &events.EvalScored{ProblemID: fmt.Sprint("p", i)}
		for _, r := range text {
			e.Correct = append(e.Correct, r == '1')
		}
		f.Add(e)
	}
	return f
}

func TestAvgOverRunsAndProblems(t *testing.T) {
	near := func(what string, have Estimate, mean, low, high float64) {
		t.Helper()
		for i, v := range [][2]float64{{have.Mean, mean}, {have.Low, low}, {have.High, high}} {
			if math.IsNaN(v[0]) != math.IsNaN(v[1]) || math.Abs(v[0]-v[1]) > 1e-9 {
				t.Errorf("%s: have %v, value %d should be %v", what, have, i, v[1])
			}
		}
	}
	nan := math.NaN()
	near("no run", Runs{}.Avg(), nan, nan, nan)
	near("runs without a common problem", Runs{runOf("1", ""), runOf("", "1")}.Avg(), nan, nan, nan)
	one := runOf("11", "10", "00")
	low, high := one.AvgInterval()
	near("one run", Runs{one}.Avg(), 0.5, low, high)
	// Nothing varies between runs that are equal on problems that are equal.
	near("no spread", Runs{runOf("10", "10"), runOf("10", "10")}.Avg(), 0.5, 0.5, 0.5)
	// The third problem is not in both runs. The runs vary between 1 and 0, so each
	// is drawn twice in a quarter of the resamples.
	near("runs that differ", Runs{runOf("1", "1", "1"), runOf("0", "0", "")}.Avg(), 0.5, 0, 1)
	near("problems that differ", Runs{runOf("1", "0"), runOf("1", "0")}.Avg(), 0.5, 0, 1)

	// The difference is paired: here it is a quarter for each seed and problem,
	// although seeds and problems vary.
	base := Runs{runOf("1110", "1000"), runOf("1100", "0000")}
	better := Runs{runOf("1111", "1100"), runOf("1110", "1000")}
	near("paired", better.AvgMinus(base), 0.25, 0.25, 0.25)
	near("paired the other way", base.AvgMinus(better), -0.25, -0.25, -0.25)
	near("to itself", base.AvgMinus(base), 0, 0, 0)
	if e := better.Avg(); !(e.Low < e.Mean && e.Mean < e.High) {
		t.Errorf("%v: runs and problems vary", e)
	}

	near("values", Over([]float64{0.25, nan, 0.75}), 0.5, 0.25, 0.75)
	near("one value", Over([]float64{0.25}), 0.25, nan, nan)
	near("no value", Over(nil), nan, nan, nan)
}

// The interval is as wide for runs that differ as for problems that differ, and
// narrower where neither has all of the spread.
func TestIntervalTreatsRunsAndProblemsAlike(t *testing.T) {
	byProblem := [][]float64{{0, 0, 1, 1}, {0, 0, 1, 1}, {0, 0, 1, 1}, {0, 0, 1, 1}}
	byRun := [][]float64{{0, 0, 0, 0}, {0, 0, 0, 0}, {1, 1, 1, 1}, {1, 1, 1, 1}}
	a, b := crossed(byProblem), crossed(byRun)
	if a != b || a.Low != 0 || a.High != 1 {
		t.Errorf("over problems %v, over runs %v", a, b)
	}
	mixed := slices.Concat(byProblem[:2], byRun[1:3])
	if e := crossed(mixed); e.High-e.Low >= 1 || e.High-e.Low < 0.5 {
		t.Errorf("%v", e)
	}
}
