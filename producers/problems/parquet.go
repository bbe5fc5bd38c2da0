package problems

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"codea1/events/files"
)

const parquetBatchRows = 64

// parquetFile reads a parquet file in one of the known layouts.
func parquetFile(path string) rows {
	return func(yield func(row, error) bool) {
		file, err := files.Open(path)
		if err != nil {
			yield(row{}, err)
			return
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			yield(row{}, err)
			return
		}
		parquetRows(file, info.Size())(yield)
	}
}

func parquetRows(file io.ReaderAt, size int64) rows {
	return func(yield func(row, error) bool) {
		reader, err := openParquet(file, size)
		if err != nil {
			yield(row{}, err)
			return
		}
		layout, err := layoutOf(reader.columns)
		if err != nil {
			yield(row{}, err)
			return
		}
		for number := 1; ; {
			records, err := reader.next()
			if errors.Is(err, io.EOF) {
				if read := int64(number - 1); read != reader.total {
					yield(row{}, fmt.Errorf("damaged parquet: it has %d of its %d rows", read, reader.total))
				}
				return
			}
			if err != nil {
				yield(row{}, fmt.Errorf("damaged parquet: row %d: %w", number, err))
				return
			}
			for _, r := range records {
				problem, err := layout.problem(r)
				if !yield(row{number, problem, err}, nil) {
					return
				}
				number++
			}
		}
	}
}

// parquetReader reads a file's rows in batches. The name of a column is its path
// without the levels of lists, for example test_info.function_name.
type parquetReader struct {
	columns []string // by column index
	total   int64    // rows, according to the footer
	groups  []parquet.RowGroup
	rows    parquet.Rows // of the first of groups; nil before it is opened
}

func openParquet(file io.ReaderAt, size int64) (reader *parquetReader, err error) {
	defer recoverCorrupt(&err)
	// The library allocates the footer before it finds that the file is shorter.
	var end [8]byte // the length of the footer and a mark
	if n, _ := file.ReadAt(end[:], size-int64(len(end))); n == len(end) && int64(binary.LittleEndian.Uint32(end[:])) > size {
		return nil, errors.New("not parquet or damaged: the footer is longer than the file")
	}
	// Rows are read in order, without indexes. The library fails to read the index
	// of a file without row groups or columns.
	opened, err := parquet.OpenFile(file, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("not parquet or damaged: %w", err)
	}
	reader = &parquetReader{groups: opened.RowGroups(), total: opened.NumRows()}
	for _, path := range opened.Schema().Columns() {
		named := slices.DeleteFunc(slices.Clone(path), func(level string) bool {
			return level == "list" || level == "element" || level == "item" || level == "array"
		})
		reader.columns = append(reader.columns, strings.Join(named, "."))
	}
	switch {
	case len(reader.columns) == 0:
		return nil, errors.New("the parquet file has no columns")
	case reader.total == 0:
		return nil, errors.New("the parquet file has no rows")
	}
	return reader, nil
}

// recoverCorrupt turns a panic into an error. The library panics on some corrupt
// pages.
func recoverCorrupt(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("damaged parquet: %v", fault)
		if _, ok := fault.(runtime.Error); ok { // such as an index out of range
			*err = errors.New("damaged parquet: its pages do not match its metadata")
		}
	}
}

// next returns up to parquetBatchRows rows, io.EOF after the last.
func (p *parquetReader) next() (records []*record, err error) {
	defer recoverCorrupt(&err)
	batch := make([]parquet.Row, parquetBatchRows)
	for len(p.groups) > 0 {
		if p.rows == nil {
			p.rows = p.groups[0].Rows()
		}
		n, err := p.rows.ReadRows(batch)
		for _, values := range batch[:n] {
			records = append(records, p.record(values))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if err != nil || n == 0 {
			if err := p.rows.Close(); err != nil {
				return nil, err
			}
			p.rows, p.groups = nil, p.groups[1:]
		}
		if len(records) > 0 {
			return records, nil
		}
	}
	return nil, io.EOF
}

// record is one row. Its methods return the values of columns and remember the
// first error.
type record struct {
	text map[string][]string // the values of each column, without those that are null
	kind map[string]string   // the types of columns that are not text
	err  error
}

func (p *parquetReader) record(values parquet.Row) *record {
	r := &record{text: make(map[string][]string, len(p.columns)), kind: map[string]string{}}
	for _, v := range values {
		name := p.columns[v.Column()]
		switch {
		case v.IsNull():
		case v.Kind() == parquet.ByteArray:
			r.text[name] = append(r.text[name], string(v.ByteArray())) // a copy: the batch is used again
		default:
			r.kind[name] = v.Kind().String()
		}
	}
	return r
}

// has reports whether a column has a value.
func (r *record) has(column string) bool { return len(r.text[column]) > 0 || r.kind[column] != "" }

// list returns the texts of a list column, which must have some.
func (r *record) list(column string) []string {
	if r.err != nil {
		return nil
	}
	if kind, ok := r.kind[column]; ok {
		r.err = &FieldError{column, fmt.Sprintf("is of type %s, not text", kind)}
	} else if len(r.text[column]) == 0 {
		r.err = &FieldError{column, "is missing"}
	}
	return r.text[column]
}

// required returns the text of a column, the first if it is a list.
func (r *record) required(column string) string {
	r.list(column)
	return r.optional(column)
}

// optional is like required. It returns "" for a column without text.
func (r *record) optional(column string) string {
	if len(r.text[column]) == 0 {
		return ""
	}
	return r.text[column][0]
}
