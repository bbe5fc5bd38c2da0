package evaluation

// Flags are the settings of the evaluations.
type Flags struct {
	EvalProblems int `yaml:"eval-problems" help:"Held-out problems of an evaluation; 0 for all." default:"0" min:"0" max:"1073741824" change:"never"`
	EvalAnswers  int `yaml:"eval-answers" help:"Answers per held-out problem: k of avg@k." default:"8" min:"0" max:"1024"`
	// A training has no use for it: its suites are those of the defective programs.
	EvalAnswerSuites int  `yaml:"eval-answer-suites" help:"Suites per sampled answer of a held-out problem, for codea1 eval --test-model." default:"0" min:"0" max:"1024"`
	EvalSuites       int  `yaml:"eval-suites" help:"Suites per defective program of a held-out problem." default:"4" min:"0" max:"1024"`
	EvalRounds       bool `yaml:"eval-rounds" help:"Write each suite of a defective program in as many rounds as it has tests, for codea1 eval --rounds: a round asks for one test and shows the tests before it."`
}
