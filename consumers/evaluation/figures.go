package evaluation

import (
	"maps"
	"math"
	"slices"

	"codea1/events"
)

// maxProblems bounds the problems of an evaluation that Figures keeps apart.
// Later ones count in Avg, but not in the intervals and in PassAt.
const maxProblems = 1 << 16

// Figures are the figures of one evaluation, folded from its eval.scored
// events. The order of the events does not matter beyond rounding. Shares and
// probabilities are within [0, 1], and NaN without a measurement. The zero value
// has seen no event.
type Figures struct {
	Groups int // groups posed
	Scored int // groups scored; the others are not complete or were dropped

	// Code LLM.
	Problems int // problems with a scored answer
	Answers  int // k of avg@k: the most answers of a problem

	// Test LLM.
	Suites    int
	Stated    int // tests written
	Right     int // tests kept and right as stated
	Defective int // suites written for a defective answer
	Found     int // defective suites with a test that is right as stated and fails
	Kept      int // tests kept, right or wrong as stated; this and the next only of groups with counted inputs
	Trivial   int // tests kept with an empty or one-element input
	Searched  int // defective suites of groups with counted inputs
	Reached   int // defective suites with a kept test that fails

	sum      float64 // of the problems' shares of correct answers
	problems map[string]answers
}

// answers are the scored answers of one problem.
type answers struct{ all, correct int }

func (a answers) share() float64 { return share(a.correct, a.all) }

// Add folds in one scored group.
func (f *Figures) Add(e *events.EvalScored) {
	f.Groups = max(f.Groups, e.Plan.Groups)
	f.Scored++
	f.Suites += e.Suites
	f.Stated += e.Stated
	f.Right += e.Right
	f.Defective += e.Defective
	f.Found += e.Found
	if e.Inputs != nil {
		f.Kept += e.Inputs.Kept
		f.Trivial += e.Inputs.Trivial
		f.Searched += e.Defective
		f.Reached += e.Inputs.Reached
	}
	if len(e.Correct) == 0 {
		return
	}
	a := answers{all: len(e.Correct)}
	for _, correct := range e.Correct {
		if correct {
			a.correct++
		}
	}
	f.Problems++
	f.Answers = max(f.Answers, a.all)
	f.sum += a.share()
	if f.problems == nil {
		f.problems = map[string]answers{}
	}
	if len(f.problems) < maxProblems {
		f.problems[e.ProblemID] = a
	}
}

// Avg returns avg@k: the mean over problems of the share of correct answers.
func (f *Figures) Avg() float64 { return f.sum / float64(f.Problems) } // NaN for 0/0

// AvgInterval returns the 95% interval of Avg over problems.
func (f *Figures) AvgInterval() (low, high float64) {
	var shares []float64
	for _, problem := range slices.Sorted(maps.Keys(f.problems)) {
		shares = append(shares, f.problems[problem].share())
	}
	return Interval(shares)
}

// PassAt returns pass@1, pass@2, ... up to the fewest answers of a problem, so
// that all of them are means over the same problems.
func (f *Figures) PassAt() []float64 {
	fewest := f.Answers
	for _, a := range f.problems {
		fewest = min(fewest, a.all)
	}
	out := make([]float64, fewest)
	for k := range out {
		for _, problem := range slices.Sorted(maps.Keys(f.problems)) {
			a := f.problems[problem]
			out[k] += PassAtK(a.all, a.correct, k+1) / float64(len(f.problems))
		}
	}
	return out
}

// Validity returns the share of the tests written that are kept and right as
// stated.
func (f *Figures) Validity() float64 { return share(f.Right, f.Stated) }

// DefectFinding returns the share of the suites on a defective answer that show
// its defect.
func (f *Figures) DefectFinding() float64 { return share(f.Found, f.Defective) }

// Reach returns the share of the suites on a defective answer with a kept test
// that the answer fails:
//
//	reached / searched
//
// It is at least DefectFinding. The difference is the defects with an input in the
// suite that states a wrong value.
func (f *Figures) Reach() float64 { return share(f.Reached, f.Searched) }

// TrivialInputs returns the share of the kept tests with a trivial input (Score).
func (f *Figures) TrivialInputs() float64 { return share(f.Trivial, f.Kept) }

// Changes returns, for each problem of both evaluations, the change in the share
// of correct answers. Their order is that of the problems' IDs, so that an
// Interval of them is always the same.
func Changes(before, after *Figures) []float64 {
	var out []float64
	for _, problem := range slices.Sorted(maps.Keys(before.problems)) {
		if a, ok := after.problems[problem]; ok {
			out = append(out, a.share()-before.problems[problem].share())
		}
	}
	return out
}

func share(part, whole int) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return float64(part) / float64(whole)
}
