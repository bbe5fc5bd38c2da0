package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/query"
)

// CompactCommand is `codea1 replay compact`.
type CompactCommand struct {
	runArgument
	To   string `help:"Compact the events up to here: step:N (where both models have trained step N), an event's number, or end." placeholder:"POSITION" required:""`
	JSON bool   `name:"json" help:"Print the report as one JSON object."`
}

// compactedJSON is the report as --json prints it.
type compactedJSON struct {
	Log string `json:"log"`
	eventlog.Compaction
	DiskBefore uint64 `json:"disk_before"`
	DiskAfter  uint64 `json:"disk_after"`
}

// Run removes the tokens from the log's older part. The log must not be open for
// writing: otherwise an *eventlog.InUseError names the process.
func (c *CompactCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	l, err := c.open(eventlog.Options{Logger: logger})
	if err != nil {
		return err
	}
	before := eventlog.DiskUsage(l.Dir())
	var report eventlog.Compaction
	wanted, err := query.Position(ctx, l, c.To)
	var settled uint64
	if err == nil {
		settled, err = l.Settled(ctx, wanted)
	}
	if err == nil {
		meter := newMeter("compacting", settled)
		report, err = l.Compact(ctx, settled, meter.to)
		meter.finish()
	}
	if err := errors.Join(err, l.Close()); err != nil {
		return err
	}
	after := eventlog.DiskUsage(l.Dir())
	if c.JSON {
		return export.NewLines(out).Encode(&compactedJSON{l.Dir(), report, before, after})
	}
	table := newTable(out)
	fmt.Fprintf(table, "log\t%s\n", l.Dir())
	fmt.Fprintf(table, "compacted\t%d payloads up to event %d, from %s to %s\n", report.Events, report.To, megabytes(report.BytesBefore), megabytes(report.BytesAfter))
	if report.Whole > 0 {
		fmt.Fprintf(table, "left whole\t%d payloads that are not well-formed\n", report.Whole)
	}
	if settled < wanted {
		fmt.Fprintf(table, "\tthe next event is of a group that is still to be trained on\n")
	}
	fmt.Fprintf(table, "on disk\t%s, before %s\n", megabytes(after), megabytes(before))
	if report.Waiting {
		fmt.Fprintf(table, "\tanother process reads the log: compact again later to free the rest of the space\n")
	}
	return table.Flush()
}

func megabytes(n uint64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
