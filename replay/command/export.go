package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"codea1/events/commandline"
	"codea1/replay/eventlog"
	"codea1/replay/export"
)

// ExportCommand is `codea1 replay export`.
type ExportCommand struct {
	runArgument
	selectionFlags
	Table  string `help:"Rows: events, answers, tests, golden (problems with the tests that the run has generated, to train on), hardened (problems with those of them that tell its answers apart), or pairs (two answers to a problem, the better one first, to train a reward model)." default:"events" enum:"events,answers,tests,golden,hardened,pairs"`
	Format string `help:"jsonl or parquet." default:"jsonl" enum:"jsonl,parquet"`
	Out    string `help:"File to write; it appears when it is complete. Without it, standard output." placeholder:"FILE"`
}

// Run writes a table of the run.
func (c *ExportCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	selection, err := c.selection()
	if err != nil {
		return err
	}
	if len(selection.Types) > 0 && c.Table != export.TableEvents {
		return commandline.Wrong(fmt.Errorf("--type selects events; it does not apply to --table %s", c.Table))
	}
	return c.read(logger, func(l *eventlog.Log) error {
		if err := checkGroups(ctx, l, selection.Groups); err != nil {
			return err
		}
		total, _ := l.Last()
		meter := newMeter("exporting", total)
		defer meter.finish()
		return writeTo(out, c.Out, func(out io.Writer) error {
			x := export.Exporter{Log: l, Selection: selection, Format: c.Format, Out: out, Progress: meter.at}
			return x.Export(ctx, c.Table)
		})
	})
}
