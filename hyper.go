package main

// Hyper is every hyper-parameter of a training. The defaults are the paper's
// (arXiv 2603.15611), for real models; the preset "tiny" replaces those that
// make no sense for the embedded engine. Each field is a flag, an environment
// variable (CODEA1_ and the flag's name in capitals) and a key of the
// configuration file.
type Hyper struct {
	Seed uint64 `help:"Root of every random choice: the same seed gives the same run." default:"1" group:"Schedule"`

	ProblemsPerStep int `help:"Problems of one step." default:"256" group:"Schedule"`
	Epochs          int `help:"Passes over the training problems." default:"3" group:"Schedule"`
	Steps           int `help:"Training steps; 0 for as many as the epochs take." default:"0" group:"Schedule"`
	TrainProblems   int `help:"Training problems used, picked by the seed; 0 for all." default:"0" group:"Schedule"`
	MaxStaleness    int `help:"Policy versions that generation may run ahead of training; 0 is the paper's synchronous schedule." default:"0" group:"Schedule"`

	Answers     int     `help:"M: answers sampled per problem." default:"8" group:"Sampling"`
	Suites      int     `help:"N: test suites sampled per answer." default:"8" group:"Sampling"`
	Tests       int     `help:"K: tests wanted in a suite." default:"8" group:"Sampling"`
	Temperature float64 `help:"Sampling temperature of both models." default:"1.0" group:"Sampling"`
	TopP        float64 `help:"Nucleus: sample from the most likely tokens that hold this probability." default:"1.0" group:"Sampling"`
	TopK        int     `help:"Sample from this many of the most likely tokens; 0 for all." default:"0" group:"Sampling"`
	CodeTokens  int     `help:"Most tokens of an answer." default:"2048" group:"Sampling"`
	TestTokens  int     `help:"Most tokens of a suite." default:"2048" group:"Sampling"`
	PromptStyle string  `help:"How questions are put to the models: paper (full instructions) or plain (the question alone)." default:"paper" enum:"paper,plain" group:"Sampling"`

	Reward     rewardName `help:"Reward recipe: a1 (adversarial), golden (golden tests), selfplay, or a recipe file, which ends in .yaml or .yml." default:"a1" group:"Reward"`
	Alpha      float64    `help:"Weight of a suite's validity against its adversarial reward." default:"0.5" group:"Reward"`
	Historical int        `help:"Tests of the Mistake Book replayed per problem; 0 for no Mistake Book." default:"8" group:"Reward"`

	ProblemsPerUpdate int     `help:"Problems of one mini-batch: one optimizer step each." default:"128" group:"Optimizer"`
	LearningRate      float64 `help:"Peak learning rate of AdamW." default:"1e-6" group:"Optimizer"`
	TestLearningRate  float64 `help:"Peak learning rate of the Test LLM; 0 for the same as the Code LLM's." default:"0" group:"Optimizer"`
	WarmupSteps       int     `help:"Optimizer steps of linear warm-up; cosine decay follows." default:"10" group:"Optimizer"`
	MinLRRatio        float64 `help:"Share of the peak learning rate that is left at the end." name:"min-lr-ratio" default:"0" group:"Optimizer"`
	WeightDecay       float64 `help:"Decoupled weight decay." default:"0.1" group:"Optimizer"`
	Beta1             float64 `help:"AdamW's decay of the first moment." name:"beta1" default:"0.9" group:"Optimizer"`
	Beta2             float64 `help:"AdamW's decay of the second moment." name:"beta2" default:"0.999" group:"Optimizer"`
	Epsilon           float64 `help:"AdamW's epsilon." default:"1e-8" group:"Optimizer"`
	GradClip          float64 `help:"Largest global gradient norm; 0 for no limit." default:"1.0" group:"Optimizer"`

	ClipLow       float64 `help:"PPO: the ratio is clipped below 1 minus this." default:"0.2" group:"Loss"`
	ClipHigh      float64 `help:"PPO: the ratio is clipped above 1 plus this." default:"0.28" group:"Loss"`
	DualClip      float64 `help:"Dual clip constant c for negative advantages; 0 for none." default:"10" group:"Loss"`
	LogRatioClamp float64 `help:"Log-ratios are clamped to plus or minus this." default:"20" group:"Loss"`
	KL            float64 `help:"Weight of the KL divergence (k3) to the reference model." name:"kl" default:"0.001" group:"Loss"`

	EvalProblems int `help:"Held-out problems of an evaluation; 0 for all." default:"0" group:"Evaluation"`
	EvalAnswers  int `help:"Answers per held-out problem: k of avg@k." default:"8" group:"Evaluation"`
	EvalSuites   int `help:"Suites per defective program of a held-out problem." default:"4" group:"Evaluation"`
	EvalEvery    int `help:"Steps between evaluations, besides those before and after; 0 for none." default:"0" group:"Evaluation"`
}

// presets hold what differs from the defaults, under the flags' names.
var presets = map[string]map[string]string{
	"paper": {},
	// Sized for a model of under a million parameters on two CPU cores: a step
	// takes about a second, and the learning rate suits the size.
	"tiny": {
		"train-problems":      "960", // three epochs: problems come back with the tests that broke their answers
		"problems-per-step":   "16",
		"problems-per-update": "8",
		"steps":               "180",
		"answers":             "4",
		"suites":              "4",
		"tests":               "3",
		"code-tokens":         "72",
		"test-tokens":         "96",
		"prompt-style":        "plain",
		"learning-rate":       "2e-4",
		"test-learning-rate":  "3e-4",
		"weight-decay":        "0.01",
		"beta2":               "0.99",
		"min-lr-ratio":        "0.1",
	},
}
