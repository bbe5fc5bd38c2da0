package replay

import (
	"encoding/json"
	"io"

	"github.com/parquet-go/parquet-go"
)

// rowWriter writes rows of one kind, as they come.
type rowWriter[T any] interface {
	write(rows ...T) error
	// close writes what is left; it does not close what is written to.
	close() error
}

// Formats of exported tables.
const (
	formatJSONL   = "jsonl"
	formatParquet = "parquet"
)

func newRowWriter[T any](format string, out io.Writer) rowWriter[T] {
	if format == formatParquet {
		return &parquetRows[T]{writer: parquet.NewGenericWriter[T](out, parquet.Compression(&parquet.Zstd))}
	}
	return jsonRows[T]{newJSONLines(out)}
}

type jsonRows[T any] struct{ encoder *json.Encoder }

func (w jsonRows[T]) write(rows ...T) error {
	for i := range rows {
		if err := w.encoder.Encode(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (jsonRows[T]) close() error { return nil }

// parquetGroupRows bounds what parquet holds in memory before it writes a row
// group.
const parquetGroupRows = 4096

type parquetRows[T any] struct {
	writer *parquet.GenericWriter[T]
	held   int
}

func (w *parquetRows[T]) write(rows ...T) error {
	n, err := w.writer.Write(rows)
	if err != nil {
		return err
	}
	if w.held += n; w.held >= parquetGroupRows {
		w.held = 0
		return w.writer.Flush()
	}
	return nil
}

func (w *parquetRows[T]) close() error { return w.writer.Close() }
