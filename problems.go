package main

import (
	"context"
	"io"
	"log/slog"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/producers/problems"
)

// ProblemsCommand is `codea1 problems`: the commands of package problems, and those that
// need the templates of the prompts as well.
type ProblemsCommand struct {
	problems.Command `embed:""`
	Corpus           CorpusCommand           `cmd:"" help:"Print training text about the built-in training problems."`
	Prompt           gpuworker.PromptCommand `cmd:"" help:"Print the prompt about a problem, or the template that writes it."`
}

// CorpusCommand is `codea1 problems corpus`.
type CorpusCommand struct {
	problems.CorpusCommand `embed:""`
	Prompts                gpuworker.PromptFlags `embed:""`
}

// Run writes the corpus with the prompts of the templates.
func (c *CorpusCommand) Run(ctx context.Context, out io.Writer) (err error) {
	if c.Prompt, err = c.Prompts.Writer(events.Role(c.Role), c.Mix.Asserts); err != nil {
		return err
	}
	return c.CorpusCommand.Run(ctx, out)
}

// problemSets implements gpuworker.Problems.
type problemSets struct{}

// Find implements gpuworker.Problems.
func (problemSets) Find(ctx context.Context, set, id string, log *slog.Logger) (*events.Problem, error) {
	found, err := problems.Find(ctx, set, id, problems.LoadOptions{Report: func(bad *problems.BadRowError) { log.Warn("row skipped", "error", bad) }})
	if err != nil {
		return nil, err
	}
	problem, _ := found.Posable(false)
	return &problem, nil
}
