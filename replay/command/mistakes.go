package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"codea1/events/commandline"
	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/mistakes"
	"codea1/replay/query"
)

// ListCommand is `codea1 mistakes list`.
type ListCommand struct {
	runArgument
	Problem string `help:"Only tests of the problem with this ID." placeholder:"ID"`
	At      string `help:"Position of the book: an event's number, step:N, start or end." default:"end" placeholder:"POSITION"`
	Sort    string `help:"Order of the tests: by problem, or by count over all problems." default:"problem" enum:"problem,count"`
	Limit   int    `help:"At most this many tests; 0 is all of them." default:"0" min:"0"`
	JSON    bool   `name:"json" help:"Print one JSON object per line."`
}

// ShowCommand is `codea1 mistakes show`.
type ShowCommand struct {
	runArgument
	ProblemID string `arg:"" name:"problem" help:"The problem's ID."`
	At        string `help:"Position of the book: an event's number, step:N, start or end." default:"end" placeholder:"POSITION"`
	JSON      bool   `name:"json" help:"Print one JSON object per line."`
}

// Run prints the tests of every problem, the most frequent of each first.
func (c *ListCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	if c.Limit < 0 {
		return fmt.Errorf("--limit %d is negative; want 0 or more", c.Limit)
	}
	return c.read(logger, func(l *eventlog.Log) error {
		book, err := bookAt(ctx, l, c.At)
		if err != nil {
			return err
		}
		if c.Problem != "" && len(book.Tests(c.Problem)) == 0 {
			if err := checkPosed(ctx, l, c.Problem); err != nil {
				return err
			}
		}
		return c.print(out, book)
	})
}

// checkPosed returns an error for a problem that the run has not posed. It
// distinguishes a mistyped ID from a problem without tests in the Mistake Book.
func checkPosed(ctx context.Context, l *eventlog.Log, problemID string) error {
	err := query.CheckPosed(ctx, l, problemID)
	if errors.Is(err, query.ErrNotPosed) {
		return commandline.Wrong(fmt.Errorf("%w; `codea1 mistakes list` lists the problems with tests", err))
	}
	return err
}

func (c *ListCommand) print(out io.Writer, book export.Tests) error {
	problems := book.Problems()
	if c.Problem != "" {
		problems = []string{c.Problem}
	}
	var tests []mistakes.Entry
	for _, id := range problems {
		tests = append(tests, byFrequency(book.Tests(id))...)
	}
	if c.Sort == "count" {
		tests = byFrequency(tests)
	}
	if c.Limit > 0 {
		tests = tests[:min(c.Limit, len(tests))]
	}
	if c.JSON {
		return printJSON(out, slices.Values(tests))
	}
	table := newTable(out)
	fmt.Fprintln(table, "PROBLEM\tCOUNT\tCALL\tEXPECTED")
	for _, e := range tests {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", e.ProblemID, e.Count, clip(e.Call, 60), clip(e.Expected, 40))
	}
	return table.Flush()
}

// Run prints the tests of one problem in full.
func (c *ShowCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	return c.read(logger, func(l *eventlog.Log) error {
		book, err := bookAt(ctx, l, c.At)
		if err != nil {
			return err
		}
		if len(book.Tests(c.ProblemID)) == 0 {
			if err := checkPosed(ctx, l, c.ProblemID); err != nil {
				return err
			}
		}
		return c.print(out, book)
	})
}

func (c *ShowCommand) print(out io.Writer, book export.Tests) error {
	entries := byFrequency(book.Tests(c.ProblemID))
	if c.JSON {
		return printJSON(out, slices.Values(entries))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# problem %s: %d tests in the Mistake Book\n", c.ProblemID, len(entries))
	for _, e := range entries {
		fmt.Fprintf(&b, "assert %s == %s  # count %d\n", e.Call, e.Expected, e.Count)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// byFrequency sorts tests by their counts. The tests of a problem have the order of
// Book.Top then.
func byFrequency(entries []mistakes.Entry) []mistakes.Entry {
	slices.SortStableFunc(entries, func(x, y mistakes.Entry) int { return cmp.Compare(y.Count, x.Count) })
	return entries
}

func printJSON(out io.Writer, entries iter.Seq[mistakes.Entry]) error {
	encoder := export.NewLines(out)
	for e := range entries {
		if err := encoder.Encode(e); err != nil {
			return err
		}
	}
	return nil
}
