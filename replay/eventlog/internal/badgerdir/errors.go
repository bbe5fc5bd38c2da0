package badgerdir

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// DamageError says that a directory is damaged.
type DamageError struct {
	Reason string
	Err    error // cause, or nil
}

func (e *DamageError) Error() string {
	if e.Err == nil {
		return e.Reason
	}
	return fmt.Sprintf("%s: %v", e.Reason, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// LockedError says that another process has the directory open for writing.
type LockedError struct {
	PID int // of that process, 0 if unknown
}

func (e *LockedError) Error() string { return fmt.Sprintf("locked by process %d", e.PID) }

// Caused reports whether an error of Badger has a cause. Badger joins causes as
// text.
func Caused(err, cause error) bool {
	return err != nil && (errors.Is(err, cause) || strings.Contains(err.Error(), cause.Error()))
}

// isLockedMessage reports whether Badger's error says that a directory is locked.
func isLockedMessage(err error) bool {
	return strings.Contains(err.Error(), "Cannot acquire directory lock")
}

// openError returns a *LockedError, a *DamageError, or an error of the system,
// for an error of Badger on opening dir.
func openError(dir string, err error) error {
	switch {
	case isLockedMessage(err):
		return &LockedError{PID: lockHolder(dir)}
	case Caused(err, syscall.EACCES), Caused(err, syscall.EROFS), Caused(err, syscall.ENOSPC), Caused(err, syscall.EMFILE):
		return fmt.Errorf("open log %s: %w", dir, err)
	}
	return &DamageError{Reason: "cannot be opened", Err: err}
}
