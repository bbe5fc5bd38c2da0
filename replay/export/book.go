package export

import (
	"context"
	"io"

	"codea1/replay/mistakes"
)

// Tests is the Mistake Book at the end of a log or at an earlier position.
type Tests interface {
	Problems() []string
	Tests(problemID string) []mistakes.Entry
	Size() int
}

// Book writes the entries of a Mistake Book, by problem, in the order of entry.
func Book(ctx context.Context, book Tests, format string, out io.Writer) error {
	w := newRowWriter[mistakes.Entry](format, out)
	for _, id := range book.Problems() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.write(book.Tests(id)...); err != nil {
			return err
		}
	}
	return w.close()
}
