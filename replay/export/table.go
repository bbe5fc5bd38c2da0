package export

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
	FormatJSONL   = "jsonl"
	FormatParquet = "parquet"
)

func newRowWriter[T any](format string, out io.Writer) rowWriter[T] {
	if format == FormatParquet {
		options := []parquet.WriterOption{parquet.Compression(&parquet.Zstd)}
		if row, ok := any(new(T)).(large); ok {
			for _, column := range row.texts() {
				options = append(options, parquet.SkipPageBounds(column))
			}
		}
		return &parquetRows[T]{writer: parquet.NewGenericWriter[T](out, options...)}
	}
	return jsonRows[T]{NewLines(out)}
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

// parquetGroupRows and parquetGroupBytes bound what parquet holds in memory
// before it writes a row group.
const (
	parquetGroupRows  = 4096
	parquetGroupBytes = 16 << 20
)

// large is a row that can be large.
type large interface {
	size() int // bytes of its texts
	// texts are the columns that hold them. The least and the greatest value of
	// every page of a column are kept in memory, and written, unless it is one
	// of these.
	texts() []string
}

type parquetRows[T any] struct {
	writer *parquet.GenericWriter[T]
	rows   int // held
	bytes  int // of their texts
}

func (w *parquetRows[T]) write(rows ...T) error {
	for i := range rows {
		if _, err := w.writer.Write(rows[i : i+1]); err != nil {
			return err
		}
		w.rows++
		if row, ok := any(&rows[i]).(large); ok {
			w.bytes += row.size()
		}
		if w.rows < parquetGroupRows && w.bytes < parquetGroupBytes {
			continue
		}
		w.rows, w.bytes = 0, 0
		if err := w.writer.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (w *parquetRows[T]) close() error { return w.writer.Close() }
