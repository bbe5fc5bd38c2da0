package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Continue opens a file of lines to add more, and makes it if there is none. It calls
// line with each line that is not empty, and cuts off an unfinished last one: a
// command that was stopped left it. The error of line is returned with the line's
// number.
func Continue(path string, line func(text []byte) error) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*os.File, error) { return nil, errors.Join(err, file.Close()) }
	info, err := file.Stat()
	if err == nil {
		err = Regular(path, info)
	}
	if err != nil {
		return fail(err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return fail(err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for number, row := range bytes.Split(text[:whole], []byte("\n")) {
		if len(row) == 0 {
			continue
		}
		if err := line(row); err != nil {
			return fail(fmt.Errorf("%s:%d: %w", path, number+1, err))
		}
	}
	if err := file.Truncate(int64(whole)); err != nil {
		return fail(err)
	}
	if _, err := file.Seek(int64(whole), io.SeekStart); err != nil {
		return fail(err)
	}
	return file, nil
}
