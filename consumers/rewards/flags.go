package rewards

import (
	"fmt"
	"slices"
	"strings"

	"codea1/events"
)

// Flags are the settings of the reward.
type Flags struct {
	Reward     Name    `yaml:"reward" help:"Reward recipe: a1 (adversarial), golden (golden tests), selfplay, verpo, cure, utrl, mutation, coverage, execverify (predict problems), secure, secure-a1, seccoderx, codescaler, or a recipe file, which ends in .yaml or .yml." default:"a1"`
	MeasureFor List    `yaml:"measure-for" help:"Recipes for which the groups are measured too, so that codea1 shadow and replay rescore can compute them: their names, separated by commas. The training stays the same and needs more time." placeholder:"RECIPES"`
	Shadow     List    `yaml:"shadow" help:"Recipes under which the stage shadow rewards each group, too, for curves beside the real ones: up to 8 names, separated by commas. The training stays the same; the groups are measured as --measure-for says." placeholder:"RECIPES"`
	Alpha      float64 `yaml:"alpha" help:"Weight of a suite's validity against its adversarial reward." default:"0.5" min:"0" max:"1"`
}

// Recipe returns the recipe that the settings name.
func (f *Flags) Recipe() (Recipe, error) { return New(string(f.Reward), f.Alpha) }

// Shadows returns the recipes of the stage shadow; none for a run without this stage.
func (f *Flags) Shadows() (all []Recipe, err error) {
	for _, name := range f.Shadow.split() {
		recipe, err := New(name, f.Alpha)
		if err != nil {
			return nil, err
		}
		all = append(all, recipe)
	}
	return all, nil
}

// Needs returns the measurements that the recipe and the recipes of MeasureFor and
// Shadow need.
func (f *Flags) Needs() (Needs, error) {
	recipe, err := f.Recipe()
	if err != nil {
		return Needs{}, err
	}
	of := []Recipe{recipe}
	for _, name := range f.MeasureFor.split() {
		recipe, err := New(name, f.Alpha)
		if err != nil {
			return Needs{}, err
		}
		of = append(of, recipe)
	}
	shadows, err := f.Shadows()
	if err != nil {
		return Needs{}, err
	}
	of = append(of, shadows...)
	var needs Needs
	for _, recipe := range of {
		rules := recipe.Rules()
		needs.Golden, needs.Cross = needs.Golden || rules.Golden, needs.Cross || rules.Cross
		needs.Probes, needs.Judges = append(needs.Probes, rules.Probe), append(needs.Judges, rules.Judge)
	}
	return needs, nil
}

// Needs are the measurements that recipes need. An empty probe or judge is none.
type Needs struct {
	Golden bool // golden tests on the answers
	Cross  bool // the tests of all suites on all answers
	Probes []events.Probe
	Judges []events.Judge
}

// List holds names of recipes, separated by commas.
type List string

// UnmarshalText implements encoding.TextUnmarshaler. It refuses a name that is not one
// of Names.
func (l *List) UnmarshalText(text []byte) error {
	*l = List(text)
	if n := len(l.split()); n > events.MaxShadows {
		return fmt.Errorf("%d recipes, at most %d are possible", n, events.MaxShadows)
	}
	for i, name := range l.split() {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("%w %q; known are %s", ErrUnknownRecipe, name, strings.Join(Names(), ", "))
		}
		if slices.Contains(l.split()[:i], name) {
			return fmt.Errorf("%s occurs twice", name)
		}
	}
	return nil
}

func (l List) split() []string {
	if l == "" {
		return nil
	}
	return strings.Split(string(l), ",")
}

// Name is the name of a reward recipe. A recipe file is read at once and
// replaced by the name of its formula, which holds the whole formula. The saved
// configuration and run.started therefore do not need the file.
type Name string

// UnmarshalText implements encoding.TextUnmarshaler. The text is a name or a file.
func (n *Name) UnmarshalText(nameOrFile []byte) error {
	recipe, err := Load(string(nameOrFile), DefaultAlpha)
	if err != nil {
		return err
	}
	*n = Name(recipe.Name())
	return nil
}

// Judges returns the judges that the rewards of the run need; none if Needs fails.
func (f *Flags) Judges() []events.Judge {
	needs, err := f.Needs()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(needs.Judges))), func(j events.Judge) bool { return j == "" })
}

// Models returns the models of a run with these rewards. A reward that trains no Test LLM
// needs none, and self-play is one model in both roles. Only a run with two models may
// freeze one. It is events.ModelsBoth if there is no such recipe.
func (f *Flags) Models(frozen events.Role) events.Models {
	models := f.trained(frozen)
	if len(f.Judges()) > 0 {
		return models.WithJudge()
	}
	return models
}

// trained returns the models of a run without its judge.
func (f *Flags) trained(frozen events.Role) events.Models {
	recipe, err := f.Recipe()
	switch {
	case err != nil:
		return events.ModelsBoth
	case !recipe.Rules().TrainsTest:
		return events.ModelsCode
	case recipe.Name() == NameSelfPlay:
		return events.ModelsShared
	case frozen == events.RoleCode:
		return events.ModelsFrozenCode
	case frozen == events.RoleTest:
		return events.ModelsFrozenTest
	}
	return events.ModelsBoth
}
