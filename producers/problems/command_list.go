package problems

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
)

// setFlags are the flags of every command that reads a set.
type setFlags struct {
	OnBadRow BadRowPolicy `help:"How to treat a row that is not a valid problem: skip or fail." enum:"skip,fail" default:"fail"`
}

// options reports skipped rows to the log.
func (f setFlags) options(log *slog.Logger) LoadOptions {
	return LoadOptions{OnBadRow: f.OnBadRow, Report: func(bad *BadRowError) {
		log.Warn("row skipped", "error", bad)
	}}
}

// ListCommand is `codea1 problems list`.
type ListCommand struct {
	Set        string `arg:"" optional:"" help:"Set: builtin, builtin:train, builtin:heldout, builtin:hard, builtin:hard-heldout or a file (.jsonl, .jsonl.gz, .parquet)." default:"builtin"`
	Source     string `help:"Only problems with this text in their source."`
	Difficulty string `help:"Only problems of this difficulty."`
	JSON       bool   `name:"json" help:"Print whole problems, one JSON object per line. The output is a set in JSONL."`
	setFlags
}

// Run prints one line per problem.
func (c *ListCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	encoder := jsonEncoder(out)
	if !c.JSON {
		fmt.Fprintln(table, "ID\tSOURCE\tDIFFICULTY\tTESTS\tQUESTION")
	}
	for p, err := range Load(ctx, c.Set, c.options(log)) {
		if err != nil {
			return err
		}
		if !c.wants(p) {
			continue
		}
		if c.JSON {
			err = encoder.Encode(p)
		} else {
			_, err = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", p.ID, p.Source, orDash(p.Difficulty), len(p.Tests), summary(p.Question))
		}
		if err != nil {
			return fmt.Errorf("problems list: %w", err)
		}
	}
	return table.Flush()
}

func (c *ListCommand) wants(p *Problem) bool {
	return strings.Contains(strings.ToLower(p.Source), strings.ToLower(c.Source)) &&
		(c.Difficulty == "" || strings.EqualFold(p.Difficulty, c.Difficulty))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// summary returns the beginning of a text on one line.
func summary(text string) string {
	const maxRunes = 72
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > maxRunes {
		return string(line[:maxRunes-3]) + "..."
	}
	return string(line)
}
