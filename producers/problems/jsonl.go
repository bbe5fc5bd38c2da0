package problems

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"codea1/events/files"
)

// byteOrderMark is the beginning of text files that some editors write.
var byteOrderMark = []byte("\xef\xbb\xbf")

// maxLineBytes bounds one row of JSONL.
const maxLineBytes = 16 << 20

var errLongLine = fmt.Errorf("longer than %d bytes", maxLineBytes)

func jsonlFile(path string, compressed bool) rows {
	return func(yield func(row, error) bool) {
		file, err := files.Open(path)
		if err != nil {
			yield(row{}, err)
			return
		}
		defer file.Close()
		var text io.Reader = file
		if compressed {
			if text, err = newGzipReader(file); err != nil {
				yield(row{}, err)
				return
			}
		}
		jsonlRows(text)(yield)
	}
}

// jsonlRows reads one problem per line and skips blank lines.
func jsonlRows(text io.Reader) rows {
	return func(yield func(row, error) bool) {
		lines := bufio.NewReaderSize(text, 64<<10)
		var line []byte
		for number := 1; ; number++ {
			var err error
			line, err = readLine(lines, line[:0])
			switch {
			case errors.Is(err, errLongLine):
				if !yield(row{number: number, err: err}, nil) {
					return
				}
				err = skipLine(lines)
			case err == nil || errors.Is(err, io.EOF):
				if number == 1 {
					line = bytes.TrimPrefix(line, byteOrderMark)
				}
				if text := bytes.TrimSpace(line); len(text) > 0 {
					problem, err := decodeJSON(text)
					if !yield(row{number, problem, err}, nil) {
						return
					}
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(row{}, fmt.Errorf("row %d: %w", number, err))
				return
			}
		}
	}
}

// readLine appends the next line, without its line feed, to line. After
// errLongLine the caller skips what is left of the line.
func readLine(lines *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := lines.ReadSlice('\n')
		line = append(line, bytes.TrimSuffix(part, []byte("\n"))...)
		if len(line) > maxLineBytes {
			if err == nil {
				_ = lines.UnreadByte() // the line feed, for skipLine; it was just read
			}
			return line, errLongLine
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// skipLine reads to the end of a line.
func skipLine(lines *bufio.Reader) error {
	for {
		if _, err := lines.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// decodeJSON reads one problem: the fields of Problem or the columns of
// KodCode-V1. It ignores unknown fields: data sets have fields of their own.
func decodeJSON(line []byte) (Problem, error) {
	if !utf8.Valid(line) { // encoding/json would replace the bytes silently
		at := invalidUTF8(line)
		return Problem{}, errorAt(line, at, fmt.Sprintf("bytes that are not UTF-8 from byte %d of the row", at+1))
	}
	if at := loneSurrogate(line); at >= 0 { // and these escapes
		return Problem{}, errorAt(line, at, fmt.Sprintf("%s at byte %d of the row, which is half of a surrogate pair and no character", line[at:at+6], at+1))
	}
	var problem Problem
	err := json.Unmarshal(line, &problem)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return problem, errorAt(line, int(syntax.Offset)-1, fmt.Sprintf("broken JSON at byte %d of the row: %v", syntax.Offset, err))
	}
	if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) {
		reason := fmt.Sprintf("is a JSON %s, not %s", mismatch.Value, jsonName(mismatch.Type.Kind()))
		if mismatch.Field == "" {
			return problem, errors.New("the row " + reason)
		}
		return problem, &FieldError{mismatch.Field, reason}
	}
	if err != nil || problem.ID != "" {
		return problem, err
	}
	if r := jsonRecord(line); r.has("question_id") {
		return kodCodeProblem(r)
	}
	return problem, nil
}

// jsonName returns the name of the JSON type of a field of Problem.
func jsonName(kind reflect.Kind) string {
	switch kind {
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		return "an object"
	default:
		return "a string"
	}
}

// invalidUTF8 returns the position of the first byte that is not UTF-8.
func invalidUTF8(text []byte) int {
	at := 0
	for at < len(text) {
		symbol, size := utf8.DecodeRune(text[at:])
		if symbol == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// loneSurrogate returns the position of the first escape in JSON that is half of a
// surrogate pair, without the other half; -1 for none.
func loneSurrogate(text []byte) int {
	for at := 0; at < len(text); at++ {
		if text[at] != '\\' {
			continue
		}
		switch unit := escapedUnit(text[at:]); {
		case !utf16.IsSurrogate(unit):
			at++ // the escaped byte may be a backslash
		case utf16.DecodeRune(unit, escapedUnit(text[at+6:])) == utf8.RuneError:
			return at
		default:
			at += 11
		}
	}
	return -1
}

// escapedUnit returns the UTF-16 unit of an escape such as \ud83d that a text begins
// with; -1 for another beginning.
func escapedUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// errorAt returns a *FieldError with the field of a JSON object that the byte at
// the given position is in or comes after. It is a plain error where there is no
// such field.
func errorAt(line []byte, at int, fault string) error {
	tokens := json.NewDecoder(bytes.NewReader(line))
	field, depth, isKey := "", 0, false
	for tokens.InputOffset() <= int64(at) {
		token, err := tokens.Token()
		if err != nil {
			break
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			isKey = depth == 0 && token == json.Delim('{')
			depth++
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			field = ""
		}
		if depth != 1 {
			continue
		}
		if key, ok := token.(string); ok && isKey {
			field = strings.ToValidUTF8(key, "?")
		}
		isKey = !isKey
	}
	if field == "" {
		return errors.New(fault)
	}
	return &FieldError{field, "has " + fault}
}

// jsonRecord returns the texts in a JSON object under the names that its parquet
// columns have.
func jsonRecord(line []byte) *record {
	r := &record{text: map[string][]string{}, kind: map[string]string{}}
	var fields map[string]any
	r.err = json.Unmarshal(line, &fields)
	r.collect("", fields)
	return r
}

func (r *record) collect(name string, value any) {
	switch value := value.(type) {
	case nil:
	case string:
		r.text[name] = append(r.text[name], value)
	case []any:
		for _, element := range value {
			r.collect(name, element)
		}
	case map[string]any:
		for key, element := range value {
			r.collect(strings.TrimPrefix(name+"."+key, "."), element)
		}
	case bool:
		r.kind[name] = "boolean"
	default:
		r.kind[name] = "number"
	}
}
