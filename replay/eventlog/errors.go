package eventlog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"codea1/replay/eventlog/internal/badgerdir"
)

var (
	// ErrClosed is returned by every call on a closed Log.
	ErrClosed = errors.New("log is closed")
	// ErrReadOnly is returned by Append on a log opened with Options.ReadOnly.
	ErrReadOnly = errors.New("log is open for reading only")
	// ErrNotFound is returned for an event that is not in the log.
	ErrNotFound = errors.New("event is not in the log")
	// ErrNoLog is returned for a directory without a log.
	ErrNoLog = errors.New("no event log")
	// ErrNewerFormat is returned for a log written by a newer build.
	ErrNewerFormat = errors.New("log format is newer than this build")
)

// InUseError says that another Log has the directory open.
type InUseError struct {
	Dir string
	PID int // process that holds it, 0 if unknown
}

func (e *InUseError) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("log %s is in use by %s: wait until that run has ended, or stop it", e.Dir, by)
}

// CorruptError describes the first damage in a log.
type CorruptError struct {
	Dir     string
	Seq     uint64 // sequence number of the event, 0 if the damage is elsewhere
	EventID string // the event, where it is known
	Reason  string
	Err     error // cause, or nil
}

func (e *CorruptError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "log %s is corrupt", e.Dir)
	if e.Seq != 0 {
		fmt.Fprintf(&b, " at event %d", e.Seq)
	}
	if e.EventID != "" {
		fmt.Fprintf(&b, " (%s)", e.EventID)
	}
	fmt.Fprintf(&b, ": %s", e.Reason)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func (e *CorruptError) Unwrap() error { return e.Err }

// DiskFullError says that the file system of the log has too little room left
// to write safely.
type DiskFullError struct {
	Dir       string
	FreeBytes uint64
	NeedBytes uint64
}

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("disk full: log %s has %d MiB left and needs %d MiB; free some space and resume the run",
		e.Dir, e.FreeBytes>>20, e.NeedBytes>>20)
}

// openError turns an error of badgerdir into one of this package.
func openError(dir string, err error) error {
	var locked *badgerdir.LockedError
	if errors.As(err, &locked) {
		return &InUseError{Dir: dir, PID: locked.PID}
	}
	var damage *badgerdir.DamageError
	if errors.As(err, &damage) {
		return &CorruptError{Dir: dir, Reason: damage.Reason, Err: damage.Err}
	}
	return err
}
