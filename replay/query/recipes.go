package query

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"codea1/events"
)

// Score rewards an executed group. It is a pure function. An error means that the
// recipe cannot reward the group.
type Score = func(*events.CodeExecuted) (*events.GroupRewarded, error)

// Recipes returns reward recipes.
type Recipes interface {
	// Recipe returns the recipe with a name; alpha is the weight of R_val against
	// R_adv in recipes that have both.
	Recipe(name string, alpha float64) (Score, error)
	// File returns the recipe in a file, and its name for Recipe.
	File(path string) (name string, score Score, err error)
}

// ErrNoRecipes is returned by a program without reward recipes.
var ErrNoRecipes = errors.New("no reward recipes are configured")

// rewardTolerance is the relative difference that is allowed between machines:
// some round a multiplication and an addition once. An advantage divides by a
// deviation, which increases the difference.
const rewardTolerance = 1e-9

func near(x, y float64) bool {
	return math.Abs(x-y) <= rewardTolerance*max(1, math.Abs(x), math.Abs(y))
}

// Difference describes the first difference between two rewards of a group; it is
// empty if they agree.
func Difference(x, y *events.GroupRewarded) string {
	if len(x.Code) != len(y.Code) || len(x.Test) != len(y.Test) {
		return fmt.Sprintf("%d answers, not %d", len(y.Code), len(x.Code))
	}
	for m := range x.Code {
		a, b := &x.Code[m], &y.Code[m]
		if !near(a.Reward, b.Reward) || !near(a.Advantage, b.Advantage) || a.Loads != b.Loads || a.Masked != b.Masked {
			return fmt.Sprintf("answer %d: %+v, not %+v", m, *b, *a)
		}
		if len(x.Test[m]) != len(y.Test[m]) {
			return fmt.Sprintf("answer %d: %d suites, not %d", m, len(y.Test[m]), len(x.Test[m]))
		}
		for n := range x.Test[m] {
			if s, t := x.Test[m][n], y.Test[m][n]; !sameSuite(&s, &t) {
				return fmt.Sprintf("answer %d, suite %d: %+v, not %+v", m, n, t, s)
			}
		}
	}
	if x.TopVar != y.TopVar {
		return fmt.Sprintf("TOPVAR chooses answer %d, not %d", y.TopVar, x.TopVar)
	}
	if !slices.Equal(x.Deltas, y.Deltas) {
		return fmt.Sprintf("changes of the Mistake Book: %v, not %v", y.Deltas, x.Deltas)
	}
	return ""
}

func sameSuite(x, y *events.SuiteReward) bool {
	return near(x.Reward, y.Reward) && near(x.Advantage, y.Advantage) && near(x.RVal, y.RVal) && near(x.RAdv, y.RAdv) &&
		near(x.Penalty, y.Penalty) && near(x.Pass, y.Pass) && near(x.PassNew, y.PassNew) && near(x.FailNew, y.FailNew) &&
		near(x.PassHist, y.PassHist) && near(x.FailHist, y.FailHist) &&
		x.Valid == y.Valid && x.Invalid == y.Invalid && x.Masked == y.Masked
}
