package rewards

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codea1/events"
)

// Names of the recipes.
const (
	NameA1       = "a1"
	NameGolden   = "golden"
	NameSelfPlay = "selfplay"
)

// DefaultAlpha gives validity and the adversarial term the same weight, as in
// the paper.
const DefaultAlpha = 0.5

var (
	// ErrUnknownRecipe is returned for a name that is neither one of Names nor
	// the name of a Formula.
	ErrUnknownRecipe = errors.New("unknown reward recipe")
	// ErrAlpha is returned for an alpha outside [0, 1].
	ErrAlpha = errors.New("alpha is outside [0, 1]")
)

var recipes = map[string]func(alpha float64) Formula{
	NameA1:       A1,
	NameGolden:   func(float64) Formula { return Golden() },
	NameSelfPlay: SelfPlay,
}

// A1 returns the adversarial reward of Code-A1 (arXiv 2603.15611). The Code LLM
// earns the share of tests that its answer passes. The Test LLM earns alpha
// times the validity of its suite plus 1-alpha times the adversarial term: the
// failures of the answer on the suite, compared with its failures on the
// historical tests.
func A1(alpha float64) Formula {
	f := PaperFormula()
	f.Recipe, f.GroupRules.Alpha = NameA1, alpha
	f.Validity, f.Adversarial = alpha, 1-alpha
	return f
}

// Golden returns the paper's Golden Tests baseline: an answer earns the share of
// the problem's golden tests that it passes, and no Test LLM is trained.
func Golden() Formula {
	return Formula{Recipe: NameGolden, GoldenShare: 1, GroupRules: Rules{Advantage: AdvantageStd}}
}

// SelfPlay returns the reward of the Self-Play baseline of Code-A1 (arXiv
// 2603.15611). One model writes both answers and tests. It does not see the
// answer when it writes tests for it, because it could then agree with itself.
// The model is rewarded in both roles by the terms of A1. (The paper's
// repository has no program for the baseline and the paper has no formula. That
// the terms are those of A1 is our interpretation.)
//
// The difference to A1 follows from the missing answer in the prompt. All M x N
// suites of a group answer the same prompt, so they are one set: the advantage
// of a suite is relative to all suites of its group, not to the N suites of its
// answer. Suites of answers that do not load are left out of this comparison
// and have advantage 0.
//
// A recipe only rewards. It does not make one model of two, and it does not
// remove the answer from the prompt. Applied to a run with two models it
// computes the rewards that one model without the answer would have had.
func SelfPlay(alpha float64) Formula {
	f := A1(alpha)
	f.Recipe, f.GroupRules.Compare = NameSelfPlay, CompareGroup
	return f
}

// Names returns the names of the recipes, sorted.
func Names() []string { return slices.Sorted(maps.Keys(recipes)) }

// New returns the recipe of a name: one of Names, or the name of a Formula. A
// log records the name, so every recorded reward can be computed again from the
// log alone. Alpha, within [0, 1], is the weight of validity in A1 and
// SelfPlay; the others ignore it.
func New(name string, alpha float64) (Formula, error) {
	if isFormula(name) {
		return formulaNamed(name)
	}
	build, ok := recipes[name]
	if !ok {
		return Formula{}, fmt.Errorf("%w %q; known are %s", ErrUnknownRecipe, name, strings.Join(Names(), ", "))
	}
	if math.IsNaN(alpha) || alpha < 0 || alpha > 1 {
		return Formula{}, fmt.Errorf("reward recipe %s: %w: %v", name, ErrAlpha, alpha)
	}
	return build(alpha), nil
}

// Load returns the recipe of a name, as New does, or of the recipe file
// (RECIPE.md) of that name if it ends in .yaml or .yml. The Name of the result
// holds the whole formula, so the file is not needed again.
func Load(nameOrFile string, alpha float64) (Formula, error) {
	if ext := filepath.Ext(nameOrFile); ext != ".yaml" && ext != ".yml" || isFormula(nameOrFile) {
		return New(nameOrFile, alpha)
	}
	text, err := os.ReadFile(nameOrFile)
	if err != nil {
		return Formula{}, fmt.Errorf("reward recipe: %w", err)
	}
	return ParseFormula(nameOrFile, text)
}

// Scorer computes the rewards of an executed group under a recipe.
type Scorer = func(*events.CodeExecuted) (*events.GroupRewarded, error)

// Recipes returns recipes as functions. Other packages use it through an
// interface of their own.
type Recipes struct{}

// Recipe returns the recipe of a recorded name, as New does. It reads no file,
// because a log may come from another machine.
func (Recipes) Recipe(name string, alpha float64) (Scorer, error) {
	recipe, err := New(name, alpha)
	if err != nil {
		return nil, err
	}
	return scorer(recipe), nil
}

// File returns the recipe of a recipe file and its name.
func (Recipes) File(path string) (name string, score Scorer, err error) {
	recipe, err := Load(path, DefaultAlpha)
	if err != nil {
		return "", nil, err
	}
	return recipe.Name(), scorer(recipe), nil
}

func scorer(recipe Formula) Scorer {
	return func(group *events.CodeExecuted) (*events.GroupRewarded, error) { return Score(recipe, group) }
}
