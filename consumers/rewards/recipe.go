package rewards

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"codea1/events"
)

// Recipe is one way to reward a group. Score asks it about what was executed
// and leaves out what is masked.
type Recipe interface {
	// Name identifies the recipe in group.rewarded and in configurations.
	Name() string
	// Weight is the recipe's alpha, the weight of validity against the
	// adversarial term; 0 where the recipe has none.
	Weight() float64
	// TrainsTest reports whether the Test LLM plays: whether its suites are
	// rewarded, one answer's suites are chosen to learn from, and failures are
	// remembered in the Mistake Book.
	TrainsTest() bool
	// Rules say what is made of the rewards of a group.
	Rules() Rules
	// Suite rewards one suite on its answer, term by term. It leaves Advantage
	// and Masked unset.
	Suite(plan *events.Plan, answer *events.ExecutedAnswer, suite *events.ExecutedSuite) events.SuiteReward
	// Answer rewards one answer, given what Suite made of its suites. The
	// reward is within [0, 1].
	Answer(answer *events.ExecutedAnswer, suites []events.SuiteReward) (float64, error)
}

// Names of the recipes.
const (
	NameA1       = "a1"
	NameGolden   = "golden"
	NameSelfPlay = "selfplay"
)

// DefaultAlpha weighs validity and the adversarial term alike, as in the
// paper.
const DefaultAlpha = 0.5

var (
	// ErrUnknownRecipe is returned for a name that is neither one of Names nor
	// that of a Formula.
	ErrUnknownRecipe = errors.New("unknown reward recipe")
	// ErrAlpha is returned for an alpha outside [0, 1].
	ErrAlpha = errors.New("alpha is outside [0, 1]")
)

var recipes = map[string]func(alpha float64) Recipe{
	NameA1:       func(alpha float64) Recipe { return A1{Alpha: alpha} },
	NameGolden:   func(float64) Recipe { return Golden{} },
	NameSelfPlay: func(alpha float64) Recipe { return SelfPlay{Alpha: alpha} },
}

// Names returns the names of the recipes, sorted.
func Names() []string { return slices.Sorted(maps.Keys(recipes)) }

// New returns the recipe of a name: one of Names, or the name that a Formula
// gives itself, so that every recorded reward can be computed again from the
// log alone. Alpha, within [0, 1], matters to the named recipes that mix
// validity with the adversarial term.
func New(name string, alpha float64) (Recipe, error) {
	if isFormula(name) {
		return formulaNamed(name)
	}
	build, ok := recipes[name]
	if !ok {
		return nil, fmt.Errorf("%w %q; known are %s", ErrUnknownRecipe, name, strings.Join(Names(), ", "))
	}
	if math.IsNaN(alpha) || alpha < 0 || alpha > 1 {
		return nil, fmt.Errorf("reward recipe %s: %w: %v", name, ErrAlpha, alpha)
	}
	return build(alpha), nil
}
