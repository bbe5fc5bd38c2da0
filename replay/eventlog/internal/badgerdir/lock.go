package badgerdir

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/dgraph-io/badger/v4"
	"github.com/gofrs/flock"
)

// LockFiles keeps the files of a directory from being deleted: readers with
// snapshots that share files hold the lock shared, and a process that deletes files
// holds it exclusively. It never waits; ok is false if the lock is taken.
//
// The lock is on a file that every Badger directory has and that never changes.
func LockFiles(dir string, exclusive bool) (unlock func(), ok bool, err error) {
	lock := flock.New(filepath.Join(dir, badger.KeyRegistryFileName), flock.SetFlag(os.O_RDONLY))
	if exclusive {
		ok, err = lock.TryLock()
	} else {
		ok, err = lock.TryRLock()
	}
	if !ok {
		return nil, false, errors.Join(err, lock.Close())
	}
	return func() { _ = lock.Close() }, true, nil
}

// directoryLock returns the lock that Badger takes on the directory of a
// writer.
func directoryLock(dir string) *flock.Flock { return flock.New(dir, flock.SetFlag(os.O_RDONLY)) }

// CheckUnlocked returns a *LockedError while a writer has a directory open.
func CheckUnlocked(dir string) error {
	if isLocked(dir) {
		return &LockedError{PID: lockHolder(dir)}
	}
	return nil
}

// isLocked reports whether a writer has a directory open. Where the system
// cannot tell, opening the directory can.
func isLocked(dir string) bool {
	lock := directoryLock(dir)
	free, err := lock.TryRLock()
	_ = lock.Close()
	return err == nil && !free
}

// lockHolder reads the process ID that Badger writes beside its lock; 0 if
// there is no such process.
func lockHolder(dir string) int {
	raw, err := os.ReadFile(filepath.Join(dir, "LOCK"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || !processLives(pid) { // a killed writer leaves the file
		return 0
	}
	return pid
}

func processLives(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, syscall.EPERM)
}
