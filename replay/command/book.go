package command

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"codea1/replay/export"
)

// ExportBookCommand is `codea1 mistakes export`.
type ExportBookCommand struct {
	runArgument
	At     string `help:"The book as it stood at a position: an event's number, step:N, start or end." default:"end" placeholder:"POSITION"`
	Format string `help:"jsonl or parquet." default:"jsonl" enum:"jsonl,parquet"`
	Out    string `help:"File to write; it appears when it is whole. Without it, standard output." placeholder:"FILE"`
}

// Run writes every test of the book, by problem, in the order they entered.
func (c *ExportBookCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	l, err := c.open(logger)
	if err != nil {
		return err
	}
	book, err := bookAt(ctx, l, c.At)
	if err == nil {
		err = writeTo(out, c.Out, func(out io.Writer) error { return export.Book(ctx, book, c.Format, out) })
	}
	return errors.Join(err, l.Close())
}
