package problems

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// ErrNoProblem is wrapped when a set has no problem with the given ID.
var ErrNoProblem = errors.New("no such problem")

// ShowCommand is `codea1 problems show`.
type ShowCommand struct {
	ID   string `arg:"" help:"ID of the problem, as printed by list."`
	Set  string `help:"Set of the problem: builtin, builtin:train, builtin:heldout, builtin:hard, builtin:hard-heldout or a file (.jsonl, .jsonl.gz, .parquet)." default:"builtin"`
	JSON bool   `name:"json" help:"Print the problem as one JSON object."`
	setFlags
}

// Run prints the whole problem.
func (c *ShowCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	p, err := Find(ctx, c.Set, c.ID, c.options(log))
	if err != nil {
		return err
	}
	if c.JSON {
		encoder := jsonEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(p)
	}
	_, err = fmt.Fprint(out, p.text())
	return err
}

// Find returns the problem of a set that has an ID.
func Find(ctx context.Context, set, id string, options LoadOptions) (*Problem, error) {
	for p, err := range Load(ctx, set, options) {
		if err != nil || p.ID == id {
			return p, err
		}
	}
	return nil, fmt.Errorf("%w: %s in %s; `codea1 problems list %s` lists them, and --set names another set", ErrNoProblem, id, set, set)
}

// text returns the problem as text for reading.
func (p *Problem) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s", p.ID, p.Source)
	if p.Difficulty != "" {
		fmt.Fprintf(&b, ", %s", p.Difficulty)
	}
	fmt.Fprintf(&b, ")\n\n%s\n", strings.TrimRight(p.Question, "\n"))
	section := func(title, body string) {
		if body != "" {
			fmt.Fprintf(&b, "\n%s\n\n%s\n", title, indent(body))
		}
	}
	section("Entry point", p.EntryPoint)
	section("Starter code", p.StarterCode)
	section("Ground truth", p.Solution)
	section(fmt.Sprintf("Golden tests (%d)", len(p.Tests)), strings.Join(p.Tests, "\n"))
	for _, buggy := range p.Buggy {
		section("Wrong solution: "+buggy.BugType, buggy.Code)
	}
	return b.String()
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
