package badgerdir

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

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
	locked := isLocked(dir)
	for waited := time.Duration(0); locked && releasing(dir, &waited); {
		locked = isLocked(dir)
	}
	if locked {
		return &LockedError{PID: lockHolder(dir)}
	}
	return nil
}

// OpenReleased is badger.Open for a directory whose writer may have closed it a moment
// ago.
func OpenReleased(options badger.Options) (*badger.DB, error) {
	db, err := badger.Open(options)
	for waited := time.Duration(0); err != nil && isLockedMessage(err) && releasing(options.Dir, &waited); {
		db, err = badger.Open(options)
	}
	return db, err
}

// releaseTime bounds the wait for a lock that no writer holds.
const releaseTime = 2 * time.Second

// releasing waits a little if a directory is locked although its writer has closed it:
// a process that is just being started has copies of the open files of the one that
// starts it, and their locks, until it runs its own program. It reports whether it
// waited, which it does for releaseTime at most.
func releasing(dir string, waited *time.Duration) bool {
	if lockHolder(dir) != 0 || *waited >= releaseTime {
		return false
	}
	const wait = 10 * time.Millisecond
	time.Sleep(wait)
	*waited += wait
	return true
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
