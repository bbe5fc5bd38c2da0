package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/mistakes"
	"codea1/replay/query"
)

// HistoryCommand is `codea1 mistakes history`.
type HistoryCommand struct {
	runArgument
	ProblemID string `arg:"" name:"problem" help:"The problem's ID."`
	Call      string `help:"Only tests that make this call, for example 'solve([1, 2])'." placeholder:"CALL"`
	JSON      bool   `name:"json" help:"Print one JSON object per line."`
}

// changeJSON is a change as --json prints it.
type changeJSON struct {
	Seq      uint64 `json:"seq,omitempty"`
	Group    string `json:"group,omitempty"`
	Step     int    `json:"step,omitempty"`
	Problem  string `json:"problem"`
	Call     string `json:"call"`
	Expected string `json:"expected"`
	Before   int    `json:"before"` // count; 0 is absent
	After    int    `json:"after"`
	Answers  []int  `json:"answers,omitempty"` // that failed the test, or passed it
}

// Run prints every change of the problem's tests, in order.
func (c *HistoryCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	return c.read(logger, func(l *eventlog.Log) error { return c.print(ctx, out, l) })
}

func (c *HistoryCommand) print(ctx context.Context, out io.Writer, l *eventlog.Log) error {
	table := newTable(out)
	encoder := export.NewLines(out)
	changes := 0
	err := query.BookHistory(ctx, l, c.ProblemID, c.Call, func(t query.TestChange) error {
		changes++
		if c.JSON {
			return encoder.Encode(changeJSON{t.Seq, t.Group, t.Step, t.Change.ProblemID, t.Change.Call, t.Change.Expected, t.Change.Before, t.Change.Count, t.Answers})
		}
		if changes == 1 {
			fmt.Fprintln(table, "EVENT\tGROUP\tCOUNT\tTEST\tBY")
		}
		_, err := fmt.Fprintf(table, "%d\t%s\t%s\tassert %s == %s\t%s\n", t.Seq, t.Group, fromTo(&t.Change), clip(t.Change.Call, 60), clip(t.Change.Expected, 40), by(&t))
		return err
	})
	if err == nil && changes == 0 {
		err = c.nothing(ctx, table, l)
	}
	return errors.Join(err, table.Flush())
}

// nothing returns an error for an unknown problem or test. A problem that was posed
// but never had a test in the book is no error.
func (c *HistoryCommand) nothing(ctx context.Context, out io.Writer, l *eventlog.Log) error {
	err := checkPosed(ctx, l, c.ProblemID)
	switch {
	case err != nil || c.JSON && c.Call == "":
		return err
	case c.Call != "":
		return fmt.Errorf("problem %s: no test with the call %s has been in the Mistake Book; `codea1 mistakes history` without --call lists the problem's tests", c.ProblemID, c.Call)
	}
	_, err = fmt.Fprintf(out, "problem %s: no test has been in the Mistake Book\n", c.ProblemID)
	return err
}

// fromTo describes the change of a count.
func fromTo(c *mistakes.Change) string {
	switch {
	case c.Before == 0:
		return fmt.Sprintf("enters with %d", c.Count)
	case c.Count == 0:
		return fmt.Sprintf("leaves from %d", c.Before)
	}
	return fmt.Sprintf("%d -> %d", c.Before, c.Count)
}

func by(t *query.TestChange) string {
	verb := "failed"
	if t.Change.Count < t.Change.Before {
		verb = "passed"
	}
	return fmt.Sprintf("%s by answers %s", verb, list(t.Answers))
}

// DiffCommand is `codea1 mistakes diff`.
type DiffCommand struct {
	runArgument
	From string `help:"Position: an event's number, step:N, start or end." default:"start" placeholder:"POSITION"`
	To   string `help:"Position: an event's number, step:N, start or end." default:"end" placeholder:"POSITION"`
	JSON bool   `name:"json" help:"Print one JSON object per line."`
}

// Run prints the tests with different counts at the two positions.
func (c *DiffCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	return c.read(logger, func(l *eventlog.Log) error {
		var books [2]*mistakes.Book
		for i, position := range [...]string{c.From, c.To} {
			seq, err := query.Position(ctx, l, position)
			if err != nil {
				return err
			}
			if books[i], err = l.BookAt(ctx, seq); err != nil {
				return err
			}
		}
		return c.print(out, mistakes.Diff(books[0], books[1]))
	})
}

func (c *DiffCommand) print(out io.Writer, changes []mistakes.Change) error {
	if c.JSON {
		encoder := export.NewLines(out)
		for _, d := range changes {
			if err := encoder.Encode(changeJSON{Problem: d.ProblemID, Call: d.Call, Expected: d.Expected, Before: d.Before, After: d.Count}); err != nil {
				return err
			}
		}
		return nil
	}
	table := newTable(out)
	fmt.Fprintln(table, "PROBLEM\tCOUNT\tTEST")
	for _, d := range changes {
		fmt.Fprintf(table, "%s\t%s\tassert %s == %s\n", d.ProblemID, fromTo(&d), clip(d.Call, 60), clip(d.Expected, 40))
	}
	return table.Flush()
}
