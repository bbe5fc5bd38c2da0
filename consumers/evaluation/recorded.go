package evaluation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Recorded is an evaluation as a small file keeps it. The figures and their intervals
// can be computed again from it.
type Recorded struct {
	Suites    int `json:"suites,omitempty"`
	Stated    int `json:"stated,omitempty"`
	Right     int `json:"right,omitempty"`
	Defective int `json:"defective,omitempty"`
	Found     int `json:"found,omitempty"`
	Kept      int `json:"kept,omitempty"`
	Trivial   int `json:"trivial,omitempty"`
	Searched  int `json:"searched,omitempty"`
	Reached   int `json:"reached,omitempty"`

	Answers int    `json:"answers"` // per problem
	Correct string `json:"correct"` // correct answers per problem; with /n: of n answers; -: not evaluated
}

// maxAnswers bounds the answers per problem of a recorded evaluation.
const maxAnswers = 1 << 16

// notEvaluated stands for a problem without an answer.
const notEvaluated = "-"

// ProblemIDs returns the problems with a scored answer, sorted.
func (f *Figures) ProblemIDs() []string { return slices.Sorted(maps.Keys(f.problems)) }

// Record returns the evaluation in a small form. problems are the places of the
// problems in Correct.
func (f *Figures) Record(problems []string) *Recorded {
	correct := make([]string, len(problems))
	for i, id := range problems {
		switch a, ok := f.problems[id]; {
		case !ok:
			correct[i] = notEvaluated
		case a.all == f.Answers:
			correct[i] = strconv.Itoa(a.correct)
		default:
			correct[i] = fmt.Sprintf("%d/%d", a.correct, a.all)
		}
	}
	return &Recorded{
		Suites: f.Suites, Stated: f.Stated, Right: f.Right, Defective: f.Defective, Found: f.Found,
		Kept: f.Kept, Trivial: f.Trivial, Searched: f.Searched, Reached: f.Reached,
		Answers: f.Answers, Correct: strings.Join(correct, " "),
	}
}

// Figures returns the figures of a complete evaluation. problems are those that
// Record was given.
func (r *Recorded) Figures(problems []string) (Figures, error) {
	f := Figures{
		Groups: 1, Scored: 1, Answers: r.Answers, Suites: r.Suites, Stated: r.Stated, Right: r.Right, Defective: r.Defective, Found: r.Found,
		Kept: r.Kept, Trivial: r.Trivial, Searched: r.Searched, Reached: r.Reached, problems: map[string]answers{},
	}
	for name, pair := range map[string][2]int{
		"right": {r.Right, r.Stated}, "found": {r.Found, r.Defective}, "trivial": {r.Trivial, r.Kept}, "reached": {r.Reached, r.Searched}, "suites": {0, r.Suites},
	} {
		if pair[0] < 0 || pair[0] > pair[1] {
			return Figures{}, fmt.Errorf("%s: %d of %d", name, pair[0], pair[1])
		}
	}
	if r.Answers < 0 || r.Answers > maxAnswers {
		return Figures{}, fmt.Errorf("answers: %d, want 0 to %d", r.Answers, maxAnswers)
	}
	correct := strings.Fields(r.Correct)
	if len(correct) != len(problems) || len(problems) > maxProblems {
		return Figures{}, fmt.Errorf("correct: it has %d problems, want the %d that are listed, at most %d", len(correct), len(problems), maxProblems)
	}
	for i, text := range correct {
		if text == notEvaluated {
			continue
		}
		a := answers{all: r.Answers}
		number, of, fraction := strings.Cut(text, "/")
		var err error
		if a.correct, err = strconv.Atoi(number); err == nil && fraction {
			a.all, err = strconv.Atoi(of)
		}
		if err != nil || a.correct < 0 || a.all < 1 || a.all > r.Answers || a.correct > a.all {
			return Figures{}, fmt.Errorf("correct: %q of problem %s is no number of correct answers among %d", text, problems[i], r.Answers)
		}
		f.Problems++
		f.sum += a.share()
		f.problems[problems[i]] = a
	}
	if len(f.problems) != f.Problems {
		return Figures{}, errors.New("a problem is listed twice")
	}
	return f, nil
}
