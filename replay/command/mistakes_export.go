package command

import (
	"context"
	"io"
	"log/slog"

	"codea1/replay/eventlog"
	"codea1/replay/export"
)

// ExportBookCommand is `codea1 mistakes export`.
type ExportBookCommand struct {
	runArgument
	At     string `help:"Position of the book: an event's number, step:N, start or end." default:"end" placeholder:"POSITION"`
	Format string `help:"jsonl or parquet." default:"jsonl" enum:"jsonl,parquet"`
	Out    string `help:"File to write; it appears when it is complete. Without it, standard output." placeholder:"FILE"`
}

// Run writes every test of the book, by problem, in the order they entered.
func (c *ExportBookCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	return c.read(logger, func(l *eventlog.Log) error {
		book, err := bookAt(ctx, l, c.At)
		if err != nil {
			return err
		}
		return writeTo(out, c.Out, func(out io.Writer) error { return export.Book(ctx, book, c.Format, out) })
	})
}
