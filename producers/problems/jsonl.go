package problems

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

// byteOrderMark is the beginning of text files that some editors write.
var byteOrderMark = []byte("\xef\xbb\xbf")

// maxLineBytes bounds one row of JSONL.
const maxLineBytes = 16 << 20

func jsonlFile(path string, compressed bool) rows {
	return func(yield func(row, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(row{}, err)
			return
		}
		defer file.Close()
		var text io.Reader = file
		if compressed {
			if text, err = gzip.NewReader(bufio.NewReader(file)); err != nil {
				yield(row{}, fmt.Errorf("not gzip: %w", err))
				return
			}
		}
		jsonlRows(text)(yield)
	}
}

// jsonlRows reads one problem per line and skips blank lines.
func jsonlRows(text io.Reader) rows {
	return func(yield func(row, error) bool) {
		lines := bufio.NewScanner(text)
		lines.Buffer(make([]byte, 0, 64<<10), maxLineBytes)
		number := 1
		for ; lines.Scan(); number++ {
			line := lines.Bytes()
			if number == 1 {
				line = bytes.TrimPrefix(line, byteOrderMark)
			}
			line = bytes.TrimSpace(line)
			if len(line) == 0 {
				continue
			}
			problem, err := decodeJSON(line)
			if !yield(row{number, problem, err}, nil) {
				return
			}
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(row{}, fmt.Errorf("row %d: longer than %d bytes", number, maxLineBytes))
		} else if err != nil {
			yield(row{}, fmt.Errorf("row %d: %w", number, err))
		}
	}
}

// decodeJSON reads one problem. It ignores unknown fields: data sets have
// fields of their own.
func decodeJSON(line []byte) (Problem, error) {
	if !utf8.Valid(line) { // encoding/json would replace the bytes silently
		return Problem{}, errors.New("not valid UTF-8")
	}
	var problem Problem
	err := json.Unmarshal(line, &problem)
	if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) && mismatch.Field != "" {
		return problem, &FieldError{mismatch.Field, fmt.Sprintf("is a JSON %s, not a %s", mismatch.Value, mismatch.Type)}
	}
	return problem, err
}
