package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"codea1/replay/export"
)

// ExportCommand is `codea1 replay export`.
type ExportCommand struct {
	runArgument
	selectionFlags
	Table  string `help:"What a row is: events, answers, tests, or golden (problems with the tests the run has generated, to train on)." default:"events" enum:"events,answers,tests,golden"`
	Format string `help:"jsonl or parquet." default:"jsonl" enum:"jsonl,parquet"`
	Out    string `help:"File to write; it appears when it is whole. Without it, standard output." placeholder:"FILE"`
}

// Run writes a table of the run.
func (c *ExportCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	selection, err := c.selection()
	if err != nil {
		return err
	}
	if len(selection.Types) > 0 && c.Table != export.TableEvents {
		return fmt.Errorf("--type chooses events, and --table %s is made of groups", c.Table)
	}
	l, err := c.open(logger)
	if err != nil {
		return err
	}
	total, _ := l.Last()
	meter := newMeter("exporting", total)
	write := func(out io.Writer) error {
		x := export.Exporter{Log: l, Selection: selection, Format: c.Format, Out: out, Progress: meter.at}
		return x.Export(ctx, c.Table)
	}
	err = writeTo(out, c.Out, write)
	meter.finish()
	return errors.Join(err, l.Close())
}
