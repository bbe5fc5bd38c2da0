package sandbox

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned by every call on a closed Pool.
	ErrClosed = errors.New("sandbox pool is closed")
	// ErrNotIsolated is returned where the machine gives none of the levels that
	// the configuration accepts.
	ErrNotIsolated = errors.New("this machine does not isolate candidates as asked")
	// ErrNoPython is returned when there is no Python to run.
	ErrNoPython = errors.New("no usable Python 3")
)

// Error is a failure of the sandbox itself: it says nothing about the
// program that was to run.
type Error struct {
	Op     string // the work that failed
	Stderr string // the end of the fork server's standard error
	Err    error
}

func (e *Error) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("sandbox: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("sandbox: %s: %v; it wrote: %s", e.Op, e.Err, e.Stderr)
}

func (e *Error) Unwrap() error { return e.Err }
