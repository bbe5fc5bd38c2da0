package export

import (
	"io"

	"github.com/parquet-go/parquet-go"
)

// Formats of exported tables.
const (
	FormatJSONL   = "jsonl"
	FormatParquet = "parquet"
)

// parquetGroupRows and parquetGroupBytes bound the rows in memory: at either
// limit the writer writes a row group.
const (
	parquetGroupRows  = 4096
	parquetGroupBytes = 16 << 20
)

// large is a row with long texts.
type large interface {
	// texts returns the columns with long texts and the number of their bytes in
	// the row. A parquet writer keeps no smallest and largest value of these
	// columns.
	texts() map[string]int
}

// writeRows writes the rows that fill passes to write. It does not close out.
func writeRows[T any](format string, out io.Writer, fill func(write func(...T) error) error) error {
	if format != FormatParquet {
		encoder := NewLines(out)
		return fill(func(rows ...T) error {
			for i := range rows {
				if err := encoder.Encode(&rows[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	options := []parquet.WriterOption{parquet.Compression(&parquet.Zstd)}
	if row, ok := any(new(T)).(large); ok {
		for column := range row.texts() {
			options = append(options, parquet.SkipPageBounds(column))
		}
	}
	writer := parquet.NewGenericWriter[T](out, options...)
	held, bytes := 0, 0
	err := fill(func(rows ...T) error {
		for i := range rows {
			if _, err := writer.Write(rows[i : i+1]); err != nil {
				return err
			}
			held++
			if row, ok := any(&rows[i]).(large); ok {
				for _, n := range row.texts() {
					bytes += n
				}
			}
			if held < parquetGroupRows && bytes < parquetGroupBytes {
				continue
			}
			held, bytes = 0, 0
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return writer.Close()
}
