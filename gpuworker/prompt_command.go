package gpuworker

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"codea1/events"
)

// Problems has the problems of problem sets.
type Problems interface {
	// Find returns a problem of a set, without its golden tests. It logs the rows that it
	// skips.
	Find(ctx context.Context, set, id string, log *slog.Logger) (*events.Problem, error)
}

// PromptCommand is `codea1 problems prompt`.
type PromptCommand struct {
	ID      string      `arg:"" optional:"" help:"ID of the problem, as printed by list; none prints the template."`
	Set     string      `help:"Set of the problem: builtin, builtin:train, builtin:heldout, builtin:hard, builtin:hard-heldout or a file (.jsonl, .jsonl.gz, .parquet)." default:"builtin"`
	Role    events.Role `help:"Role that is asked: code or test." enum:"code,test" default:"code"`
	Answer  string      `help:"File with the program that the Test LLM is shown; the ground truth by default." type:"existingfile" placeholder:"FILE"`
	Tests   int         `help:"Tests that the Test LLM is asked for." default:"3" min:"1" max:"1000"`
	Prompts PromptFlags `embed:""`
}

// Run prints the text that a rollout gives to the chat template of the model.
func (c *PromptCommand) Run(ctx context.Context, out io.Writer, sets Problems, log *slog.Logger) error {
	if c.ID == "" {
		text, err := c.Prompts.Template(c.Role)
		if err == nil {
			_, err = fmt.Fprint(out, text)
		}
		return err
	}
	write, err := c.Prompts.Writer(c.Role, c.Tests)
	if err != nil {
		return err
	}
	problem, err := sets.Find(ctx, c.Set, c.ID, log)
	if err != nil {
		return err
	}
	code := problem.Solution
	if c.Answer != "" {
		text, err := os.ReadFile(c.Answer)
		if err != nil {
			return err
		}
		code = string(text)
	}
	text, err := write(problem, code)
	if err == nil {
		_, err = fmt.Fprintln(out, text)
	}
	return err
}

// Writer returns the function that writes the prompt of a role about a problem. The Test
// LLM is shown code and asked for so many tests.
func (f *PromptFlags) Writer(role events.Role, tests int) (func(p *events.Problem, code string) (string, error), error) {
	prompt, err := f.Prompt(role)
	if err != nil {
		return nil, err
	}
	return func(p *events.Problem, code string) (string, error) {
		fields := CodeFields(p)
		if role == events.RoleTest {
			fields = TestFields(p, code, tests, nil)
		}
		messages, err := prompt.Write(fields)
		if err != nil {
			return "", err
		}
		return messages[0].Content, nil
	}, nil
}
