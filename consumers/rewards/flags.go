package rewards

// Flags are the settings of the reward.
type Flags struct {
	Reward Name    `yaml:"reward" help:"Reward recipe: a1 (adversarial), golden (golden tests), selfplay, verpo, cure, utrl, mutation, coverage, or a recipe file, which ends in .yaml or .yml." default:"a1"`
	Alpha  float64 `yaml:"alpha" help:"Weight of a suite's validity against its adversarial reward." default:"0.5" min:"0" max:"1"`
}

// Recipe returns the recipe that the settings name.
func (f *Flags) Recipe() (Recipe, error) { return New(string(f.Reward), f.Alpha) }

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
