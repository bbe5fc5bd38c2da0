package rewards

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"codea1/events"
	"codea1/events/files"
)

// Names of the recipes.
const (
	NameA1         = "a1"
	NameGolden     = "golden"
	NameSelfPlay   = "selfplay"
	NameVerpo      = "verpo"
	NameCure       = "cure"
	NameUtrl       = "utrl"
	NameMutation   = "mutation"
	NameCoverage   = "coverage"
	NameExecVerify = "execverify"
	NameSecure     = "secure"
	NameSecCoderX  = "seccoderx"
	NameCodeScaler = "codescaler"
	NameSecureA1   = "secure-a1"
)

// Recipe rewards executed groups. A Formula is one; others see the whole group.
type Recipe interface {
	// Name identifies the recipe in group.rewarded and in configurations. New makes
	// the same recipe of it again.
	Name() string
	// Rules returns the decisions about the rewards of a whole group, and the
	// needs of the recipe.
	Rules() Rules
	// Reward sets the rewards of the group's answers and suites, which are any finite
	// numbers. It is pure, and the order of the answers does not matter.
	Reward(g *Group) error
}

var (
	// ErrUnknownRecipe is returned for a name that is neither one of Names nor
	// the name of a Formula.
	ErrUnknownRecipe = errors.New("unknown reward recipe")
	// ErrAlpha is returned for an alpha outside [0, 1].
	ErrAlpha = errors.New("alpha is outside [0, 1]")
)

// recipes builds each recipe with a name. A new one is a file with its formula, an
// entry here and a section in docs/recipes.md.
var recipes = map[string]func(alpha float64) Recipe{
	NameA1:         func(alpha float64) Recipe { return A1(alpha) },
	NameGolden:     func(float64) Recipe { return Golden() },
	NameSelfPlay:   func(alpha float64) Recipe { return SelfPlay(alpha) },
	NameVerpo:      func(float64) Recipe { return verpo{} },
	NameCure:       func(float64) Recipe { return cure{} },
	NameUtrl:       func(float64) Recipe { return utrl{} },
	NameMutation:   func(float64) Recipe { return mutation{} },
	NameCoverage:   func(float64) Recipe { return coverage{} },
	NameExecVerify: func(float64) Recipe { return execVerify{} },
	NameSecure:     func(float64) Recipe { return secure{} },
	NameSecCoderX:  func(float64) Recipe { return secCoderX{} },
	NameCodeScaler: func(float64) Recipe { return codeScaler{} },
	NameSecureA1:   func(alpha float64) Recipe { return secureA1{A1(alpha)} },
}

// Names returns the names of the recipes, sorted.
func Names() []string { return slices.Sorted(maps.Keys(recipes)) }

// New returns the recipe of a name: one of Names, or the name of a Formula. A
// log records the name, so every recorded reward can be computed again from the
// log alone. Alpha, within [0, 1], is the weight of validity in A1 and
// SelfPlay; the others ignore it.
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

// Load returns the recipe of a name, as New does, or of the recipe file
// (RECIPE.md) of that name if it ends in .yaml or .yml. The Name of the result
// holds the whole formula, so the file is not needed again.
func Load(nameOrFile string, alpha float64) (Recipe, error) {
	if ext := filepath.Ext(nameOrFile); ext != ".yaml" && ext != ".yml" || isFormula(nameOrFile) {
		return New(nameOrFile, alpha)
	}
	file, err := files.Open(nameOrFile)
	if err != nil {
		return nil, fmt.Errorf("reward recipe: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxRecipeBytes+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("reward recipe: %w", err)
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

func scorer(recipe Recipe) Scorer {
	return func(group *events.CodeExecuted) (*events.GroupRewarded, error) { return Score(recipe, group) }
}
