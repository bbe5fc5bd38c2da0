package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"codea1/replay/eventlog"
	"codea1/replay/export"
)

// QuarantineCommand is `codea1 replay quarantine`.
type QuarantineCommand struct {
	runArgument
	JSON bool `name:"json" help:"Print one JSON object per message, with headers and payload."`
}

// Run lists the quarantined messages of a run. Their publisher may be hostile, so no
// text of theirs reaches a terminal as it is.
func (c *QuarantineCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	return c.read(logger, func(l *eventlog.Log) error {
		return buffered(out, func(out io.Writer) error {
			if c.JSON {
				lines := export.NewLines(out)
				for q, err := range l.Quarantined(ctx) {
					if err != nil {
						return err
					}
					if err := lines.Encode(&q); err != nil {
						return err
					}
				}
				return nil
			}
			return printQuarantine(ctx, out, l)
		})
	})
}

func printQuarantine(ctx context.Context, out io.Writer, l *eventlog.Log) error {
	counts := l.Quarantine()
	if counts.Messages == 0 {
		_, err := fmt.Fprintln(out, "no message is quarantined")
		return err
	}
	table := newTable(out)
	fmt.Fprintln(table, "NUMBER\tPOSITION\tAFTER EVENT\tTYPE\tGROUP\tSOURCE\tBYTES\tREASON")
	for q, err := range l.Quarantined(ctx) {
		if err != nil {
			return err
		}
		kind := harmless(string(q.Type))
		if kind == "" {
			kind = harmless(q.Place)
		}
		fmt.Fprintf(table, "%d\t%s\t%d\t%s\t%s\t%s\t%d\t%s\n", q.Number, q.Position, q.After, kind, harmless(q.Group), harmless(q.Source), q.Bytes, harmless(q.Reason))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if counts.Kept < counts.Messages {
		_, err := fmt.Fprintf(out, "%d later messages are only counted\n", counts.Messages-counts.Kept)
		return err
	}
	return nil
}

// harmless returns text that a publisher wrote, short and without control
// characters.
func harmless(s string) string {
	quoted := strconv.QuoteToGraphic(s)
	return clip(quoted[1:len(quoted)-1], 160)
}

// quarantineRow describes the counts of a quarantine.
func quarantineRow(q *eventlog.Quarantine) string {
	if q.Messages == 0 {
		return "no message"
	}
	return fmt.Sprintf("%d messages on the bus are no events of the run; `codea1 replay quarantine RUN` lists them", q.Messages)
}
