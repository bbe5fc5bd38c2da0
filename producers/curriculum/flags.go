package curriculum

import (
	"fmt"

	"codea1/events"
	"codea1/events/settings"
)

// Flags are the settings of a run's schedule and of the groups it poses.
type Flags struct {
	Seed uint64 `yaml:"seed" help:"Root of every random choice: the same seed gives the same run." default:"1" group:"Schedule"`

	ProblemsPerStep int `yaml:"problems-per-step" help:"Problems of one step." default:"256" min:"1" max:"10000" group:"Schedule" change:"never"`
	Epochs          int `yaml:"epochs" help:"Passes over the training problems; 0 without steps: no training, only the held-out problems." default:"3" min:"0" max:"1000000" group:"Schedule" change:"resume" scope:"run"`
	Steps           int `yaml:"steps" help:"Training steps; 0 for as many as the epochs take." default:"0" min:"0" max:"10000000" group:"Schedule" change:"resume" scope:"run"`
	TrainProblems   int `yaml:"train-problems" help:"Training problems to use, chosen by the seed; 0 for all." default:"0" min:"0" max:"1073741824" group:"Schedule"`
	MaxStaleness    int `yaml:"max-staleness" help:"Policy versions that sampling may run ahead of training; 0 is the paper's synchronous schedule." default:"0" min:"0" max:"64" group:"Schedule"`
	Historical      int `yaml:"historical" help:"Tests of the Mistake Book replayed with each group; 0 for no Mistake Book." default:"8" min:"0" max:"1000" group:"Schedule"`
	EvalEvery       int `yaml:"eval-every" help:"Steps between evaluations, besides those before and after training; 0 for none." default:"0" min:"0" max:"10000000" group:"Schedule" change:"resume" scope:"run"`

	Answers     int     `yaml:"answers" help:"M: answers sampled per problem." default:"8" min:"1" max:"1024" group:"Sampling"`
	Suites      int     `yaml:"suites" help:"N: test suites sampled per answer." default:"8" min:"1" max:"1024" group:"Sampling"`
	Tests       int     `yaml:"tests" help:"K: tests wanted in a suite." default:"8" min:"1" max:"1024" group:"Sampling"`
	Temperature float64 `yaml:"temperature" help:"Sampling temperature of both models." default:"1.0" above:"0" max:"100" group:"Sampling"`
	CodeTokens  int     `yaml:"code-tokens" help:"Most tokens of an answer." default:"2048" min:"1" max:"1048576" group:"Sampling"`
	TestTokens  int     `yaml:"test-tokens" help:"Most tokens of a suite." default:"2048" min:"1" max:"1048576" group:"Sampling"`
}

// Config is the configuration of a curriculum.
type Config struct {
	Flags
	Golden bool          // pose groups with golden tests, for a recipe that needs them
	Cross  bool          // ask for the tests of all suites on all answers, for a recipe that needs them
	Probes string        // kinds of probes to ask for, as in events.Plan
	Judges string        // judges to ask for, as in events.Plan
	Models events.Models // of the run; without a Test LLM, groups have no suites
}

// PlannedSteps returns the training steps of a run over a number of problems. As
// in the paper's data loader, an epoch does not pose the problems that are too few
// for a last step; the next epoch shuffles all of them again.
func (f *Flags) PlannedSteps(problems int) int {
	if f.Steps > 0 {
		return f.Steps
	}
	return f.Epochs * (problems / f.ProblemsPerStep)
}

// Evaluations returns the evaluations of a run: before and after training, and in
// between.
func (f *Flags) Evaluations(steps int) int {
	switch {
	case steps == 0:
		return 1
	case f.EvalEvery == 0:
		return 2
	}
	return 2 + (steps-1)/f.EvalEvery
}

// validate checks the settings against the number of training problems.
func (f *Flags) validate(problems int) error {
	err := settings.Check(f, func(key string) string { return "curriculum: --" + key })
	if err == nil && problems < f.ProblemsPerStep {
		err = fmt.Errorf("curriculum: the problem set has %d problems, fewer than the %d of one step; lower --problems-per-step", problems, f.ProblemsPerStep)
	}
	return err
}
