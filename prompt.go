package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/producers/problems"
)

// ProblemsCommand is `codea1 problems`: the commands of package problems, and those that
// need the templates of the prompts as well.
type ProblemsCommand struct {
	problems.Command `embed:""`
	Corpus           CorpusCommand `cmd:"" help:"Print training text about the built-in training problems."`
	Prompt           PromptCommand `cmd:"" help:"Print the prompt about a problem, or the template that writes it."`
}

// CorpusCommand is `codea1 problems corpus`.
type CorpusCommand struct {
	problems.CorpusCommand `embed:""`
	Prompts                gpuworker.PromptFlags `embed:""`
}

// Run writes the corpus with the prompts of the templates.
func (c *CorpusCommand) Run(ctx context.Context, out io.Writer) error {
	prompt, err := c.Prompts.Prompt(events.Role(c.Role))
	if err != nil {
		return err
	}
	c.Prompt = func(p *events.Problem, code string) (string, error) {
		fields := gpuworker.CodeFields(p)
		if events.Role(c.Role) == events.RoleTest {
			fields = gpuworker.TestFields(p, code, c.Mix.Asserts, nil)
		}
		messages, err := prompt.Write(fields)
		if err != nil {
			return "", err
		}
		return messages[0].Content, nil
	}
	return c.CorpusCommand.Run(ctx, out)
}

// PromptCommand is `codea1 problems prompt`.
type PromptCommand struct {
	ID      string                `arg:"" optional:"" help:"ID of the problem, as printed by list; none prints the template."`
	Set     string                `help:"Set of the problem: builtin, builtin:train, builtin:heldout, builtin:hard, builtin:hard-heldout or a file (.jsonl, .jsonl.gz, .parquet)." default:"builtin"`
	Role    events.Role           `help:"Role that is asked: code or test." enum:"code,test" default:"code"`
	Answer  string                `help:"File with the program that the Test LLM is shown; the ground truth by default." type:"existingfile" placeholder:"FILE"`
	Tests   int                   `help:"Tests that the Test LLM is asked for." default:"3" min:"1" max:"1000"`
	Prompts gpuworker.PromptFlags `embed:""`
}

// Run prints the text that a rollout gives to the chat template of the model.
func (c *PromptCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if c.ID == "" {
		text, err := c.Prompts.Template(c.Role)
		if err == nil {
			_, err = fmt.Fprint(out, text)
		}
		return err
	}
	prompt, err := c.Prompts.Prompt(c.Role)
	if err != nil {
		return err
	}
	found, err := problems.Find(ctx, c.Set, c.ID, problems.LoadOptions{Report: func(bad *problems.BadRowError) { log.Warn("row skipped", "error", bad) }})
	if err != nil {
		return err
	}
	problem, _ := found.Posable(false)
	fields := gpuworker.CodeFields(&problem)
	if c.Role == events.RoleTest {
		code := problem.Solution
		if c.Answer != "" {
			text, err := os.ReadFile(c.Answer)
			if err != nil {
				return err
			}
			code = string(text)
		}
		fields = gpuworker.TestFields(&problem, code, c.Tests, nil)
	}
	messages, err := prompt.Write(fields)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, messages[0].Content)
	return err
}
