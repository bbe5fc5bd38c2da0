package problems

// Command is `codea1 problems`, without the commands that need the templates of prompts.
type Command struct {
	List    ListCommand    `cmd:"" help:"List the problems of a set."`
	Show    ShowCommand    `cmd:"" help:"Show all of one problem."`
	Check   CheckCommand   `cmd:"" help:"Run the golden tests of every problem on its ground truth."`
	Predict PredictCommand `cmd:"" help:"Write predict problems: questions about calls of the ground truths, with literals as answers."`
}
