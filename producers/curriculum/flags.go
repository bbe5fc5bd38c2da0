package curriculum

// Flags are the settings of a run's schedule and of the groups it poses.
type Flags struct {
	Seed uint64 `yaml:"seed" help:"Root of every random choice: the same seed gives the same run." default:"1" group:"Schedule"`

	ProblemsPerStep int `yaml:"problems-per-step" help:"Problems of one step." default:"256" min:"1" max:"10000" group:"Schedule" change:"never"`
	Epochs          int `yaml:"epochs" help:"Passes over the training problems." default:"3" min:"1" max:"1000000" group:"Schedule" change:"resume"`
	Steps           int `yaml:"steps" help:"Training steps; 0 for as many as the epochs take." default:"0" min:"0" max:"10000000" group:"Schedule" change:"resume"`
	TrainProblems   int `yaml:"train-problems" help:"Training problems to use, chosen by the seed; 0 for all." default:"0" min:"0" max:"1073741824" group:"Schedule"`
	MaxStaleness    int `yaml:"max-staleness" help:"Policy versions that sampling may run ahead of training; 0 is the paper's synchronous schedule." default:"0" min:"0" max:"64" group:"Schedule"`
	Historical      int `yaml:"historical" help:"Tests of the Mistake Book replayed with each group; 0 for no Mistake Book." default:"8" min:"0" max:"1000" group:"Schedule"`
	EvalEvery       int `yaml:"eval-every" help:"Steps between evaluations, besides those before and after training; 0 for none." default:"0" min:"0" max:"10000000" group:"Schedule" change:"resume"`

	Answers     int     `yaml:"answers" help:"M: answers sampled per problem." default:"8" min:"1" max:"1024" group:"Sampling"`
	Suites      int     `yaml:"suites" help:"N: test suites sampled per answer." default:"8" min:"1" max:"1024" group:"Sampling"`
	Tests       int     `yaml:"tests" help:"K: tests wanted in a suite." default:"8" min:"1" max:"1024" group:"Sampling"`
	Temperature float64 `yaml:"temperature" help:"Sampling temperature of both models." default:"1.0" above:"0" max:"100" group:"Sampling"`
	CodeTokens  int     `yaml:"code-tokens" help:"Most tokens of an answer." default:"2048" min:"1" max:"1048576" group:"Sampling"`
	TestTokens  int     `yaml:"test-tokens" help:"Most tokens of a suite." default:"2048" min:"1" max:"1048576" group:"Sampling"`
}

// PlannedSteps returns the training steps of a run over so many problems.
func (f *Flags) PlannedSteps(problems int) int {
	if f.Steps > 0 {
		return f.Steps
	}
	return StepsFor(problems, f.ProblemsPerStep, f.Epochs)
}

// Config returns the schedule of a run over so many problems. With golden, each
// group carries the golden tests of its problem.
func (f *Flags) Config(problems int, golden bool) Config {
	return Config{
		Steps: f.PlannedSteps(problems), ProblemsPerStep: f.ProblemsPerStep, Seed: f.Seed, MaxStaleness: f.MaxStaleness,
		Historical: f.Historical, EvalEvery: f.EvalEvery,
		Answers: f.Answers, Suites: f.Suites, Tests: f.Tests, Temperature: f.Temperature,
		CodeTokens: f.CodeTokens, TestTokens: f.TestTokens, Golden: golden,
	}
}
