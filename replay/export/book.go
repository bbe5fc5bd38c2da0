package export

import (
	"context"
	"io"

	"codea1/replay/mistakes"
)

// BookRow is a test as --json prints it, and a row of an exported book.
type BookRow struct {
	Problem  string `json:"problem" parquet:"problem"`
	Call     string `json:"call" parquet:"call"`
	Expected string `json:"expected" parquet:"expected"`
	Count    int    `json:"count" parquet:"count"`
	Order    uint64 `json:"order" parquet:"order"` // rank by when it entered, within its problem
}

// Tests is a Mistake Book, of now or of then.
type Tests interface {
	Problems() []string
	Tests(problemID string) []mistakes.Entry
	Size() int
}

// Book writes the tests of a Mistake Book, by problem, in the order in which they
// entered.
func Book(ctx context.Context, book Tests, format string, out io.Writer) error {
	w := newRowWriter[BookRow](format, out)
	for _, id := range book.Problems() {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, e := range book.Tests(id) {
			if err := w.write(NewBookRow(e)); err != nil {
				return err
			}
		}
	}
	return w.close()
}

// NewBookRow returns the row of an entry.
func NewBookRow(e mistakes.Entry) BookRow {
	return BookRow{e.ProblemID, e.Call, e.Expected, e.Count, e.Order}
}
