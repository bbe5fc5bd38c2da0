package replaytest

import (
	"errors"
	"fmt"
	"os"

	"codea1/events"
)

// Recipes are three simple recipes: "share" rewards an answer with its share of passed tests,
// and a suite with the number of failed tests times alpha; "loads" rewards every answer
// with 1; "golden" is "share" for groups with verdicts of golden tests only.
type Recipes struct{}

// ErrNoGolden is returned by "golden" for a group without verdicts of golden tests.
var ErrNoGolden = errors.New("no golden verdicts")

// ErrUnknownRecipe is returned for other names.
var ErrUnknownRecipe = errors.New("unknown recipe")

// Recipe implements query.Recipes.
func (Recipes) Recipe(name string, alpha float64) (score func(*events.CodeExecuted) (*events.GroupRewarded, error), err error) {
	switch name {
	case "share":
		return func(g *events.CodeExecuted) (*events.GroupRewarded, error) { return PassShare(g, alpha), nil }, nil
	case "golden":
		return func(g *events.CodeExecuted) (*events.GroupRewarded, error) {
			if len(g.Answers[0].Golden) == 0 {
				return nil, ErrNoGolden
			}
			return PassShare(g, alpha), nil
		}, nil
	case "loads":
		return func(g *events.CodeExecuted) (*events.GroupRewarded, error) {
			r := PassShare(g, 0)
			r.Recipe, r.Deltas, r.TopVar = "loads", nil, -1
			for m := range r.Code {
				r.Code[m] = events.AnswerReward{Reward: 1, Loads: true}
				clear(r.Test[m])
			}
			return r, nil
		}, nil
	}
	return nil, fmt.Errorf("%w %q", ErrUnknownRecipe, name)
}

// PassShare is the recipe "share".
func PassShare(g *events.CodeExecuted, alpha float64) *events.GroupRewarded {
	r := &events.GroupRewarded{Plan: g.Plan, ProblemID: g.ProblemID, Recipe: "share", Alpha: alpha,
		Code: make([]events.AnswerReward, len(g.Answers)), Test: make([][]events.SuiteReward, len(g.Answers))}
	for i, h := range g.Historical {
		for m := range g.Answers {
			if g.Answers[m].Historical[i] == events.VerdictPass {
				r.Deltas = append(r.Deltas, events.BookDelta{Call: h.Call, Expected: h.Expected, Change: -1})
			}
		}
	}
	failed := map[string]int{}
	var order []events.BookDelta
	for m := range g.Answers {
		r.Code[m].Loads = g.Answers[m].Loads
		r.Test[m] = make([]events.SuiteReward, len(g.Answers[m].Suites))
		passes, kept := 0, 0
		for n := range g.Answers[m].Suites {
			suite := &g.Answers[m].Suites[n]
			fails := 0
			for _, t := range suite.Tests {
				if t.Verdict == events.VerdictPass {
					passes++
				}
				if t.Verdict.Failed() {
					fails++
					if failed[t.Call]++; failed[t.Call] == 1 {
						order = append(order, events.BookDelta{Call: t.Call, Expected: t.Expected})
					}
				}
			}
			valid, wrong, discarded := suite.Counts()
			kept += valid
			r.Test[m][n] = events.SuiteReward{Reward: alpha * float64(fails), Advantage: float64(n), Valid: valid, Invalid: wrong + discarded}
		}
		r.Code[m].Reward = float64(passes) / float64(max(kept, 1))
		r.Code[m].Advantage = float64(1-2*m) * 0.5
	}
	for _, d := range order {
		d.Change = failed[d.Call]
		r.Deltas = append(r.Deltas, d)
	}
	r.TopVar = min(1, int(alpha*4)%2)
	return r
}

// File reads the name of a recipe and its alpha from a file.
func (r Recipes) File(path string) (name string, score func(*events.CodeExecuted) (*events.GroupRewarded, error), err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	var alpha float64
	if _, err := fmt.Sscanf(string(text), "%s %g", &name, &alpha); err != nil {
		return "", nil, err
	}
	score, err = r.Recipe(name, alpha)
	return "the file's " + name, score, err
}
