package commandline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// WrongError is an error about a name or a value of the command line: the user has to
// change the line. It ends the program as a flag that cannot be parsed does.
type WrongError struct{ Err error }

// Wrong marks an error as one about the command line. It returns nil for nil.
func Wrong(err error) error {
	if err == nil {
		return nil
	}
	return &WrongError{err}
}

func (w *WrongError) Error() string { return w.Err.Error() }

// Unwrap returns the marked error.
func (w *WrongError) Unwrap() error { return w.Err }

// IsWrong reports whether an error is about the command line: it is marked, or a file is
// missing that an argument or the value of a flag names. A file that is missing in a
// directory of that name is another failure.
func IsWrong(err error, args []string) bool {
	var wrong *WrongError
	if errors.As(err, &wrong) {
		return true
	}
	var missing *fs.PathError
	if !errors.As(err, &missing) || !errors.Is(missing, fs.ErrNotExist) {
		return false
	}
	for _, arg := range args {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = value
		}
		if _, err := os.Lstat(arg); arg != "" && errors.Is(err, fs.ErrNotExist) && within(missing.Path, arg) {
			return true
		}
	}
	return false
}

// within reports whether a path is a directory or in it.
func within(path, dir string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	dir, err = filepath.Abs(dir)
	return err == nil && (path == dir || strings.HasPrefix(path, dir+string(filepath.Separator)))
}
