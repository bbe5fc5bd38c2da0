package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"

	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/query"
)

// CompactCommand is `codea1 replay compact`.
type CompactCommand struct {
	runArgument
	To   string `help:"Compact what came up to here: step:N (where both models have trained step N), an event's number, or end." placeholder:"POSITION" required:""`
	JSON bool   `name:"json" help:"Print the report as one JSON object."`
}

// compactedJSON is the report as --json prints it.
type compactedJSON struct {
	Log         string `json:"log"`
	To          uint64 `json:"to"`
	Compacted   uint64 `json:"compacted"`
	Whole       uint64 `json:"whole"`
	BytesBefore uint64 `json:"bytes_before"`
	BytesAfter  uint64 `json:"bytes_after"`
	DiskBefore  uint64 `json:"disk_before"`
	DiskAfter   uint64 `json:"disk_after"`
	Waiting     bool   `json:"waiting"`
}

// Run takes the tokens out of the log's older part. The log must not be open
// for writing: a *InUseError says who has it.
func (c *CompactCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	l, err := c.openWith(eventlog.Options{Logger: logger})
	if err != nil {
		return err
	}
	before := eventlog.DiskUsage(l.Dir())
	var report eventlog.Compaction
	wanted, settled, err := c.resolve(ctx, l)
	if err == nil {
		meter := newMeter("compacting", settled)
		report, err = l.Compact(ctx, settled, meter.to)
		meter.finish()
	}
	if err := errors.Join(err, l.Close()); err != nil {
		return err
	}
	if c.JSON {
		return export.NewLines(out).Encode(&compactedJSON{
			l.Dir(), report.To, report.Events, report.Whole, report.BytesBefore, report.BytesAfter, before, eventlog.DiskUsage(l.Dir()), report.Waiting,
		})
	}
	return printCompaction(out, &report, l.Dir(), settled < wanted, before)
}

// resolve returns the event that is meant and, at or before it, the one up to
// which no group is still to be trained on.
func (c *CompactCommand) resolve(ctx context.Context, l *eventlog.Log) (wanted, settled uint64, err error) {
	if wanted, err = query.Position(ctx, l, c.To); err != nil {
		return 0, 0, err
	}
	settled, err = l.Settled(ctx, wanted)
	return wanted, settled, err
}

func printCompaction(out io.Writer, r *eventlog.Compaction, dir string, short bool, before uint64) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "log\t%s\n", dir)
	fmt.Fprintf(table, "compacted\t%d payloads up to event %d, from %s to %s\n", r.Events, r.To, megabytes(r.BytesBefore), megabytes(r.BytesAfter))
	if r.Whole > 0 {
		fmt.Fprintf(table, "left whole\t%d payloads, which are not well-formed\n", r.Whole)
	}
	if short {
		fmt.Fprintf(table, "\tthe next event is of a group that is still to be trained on\n")
	}
	fmt.Fprintf(table, "on disk\t%s, before %s\n", megabytes(eventlog.DiskUsage(dir)), megabytes(before))
	if r.Waiting {
		fmt.Fprintf(table, "\tanother process reads the log: compact again later to give the rest of the space back\n")
	}
	return table.Flush()
}

func megabytes(n uint64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
