package badgerdir

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

var quiet = Options{Logger: slog.New(slog.DiscardHandler)}

// A process that is being started may hold the lock of a writer that has closed the
// directory: Open waits for it. A lock with a living writer is an error.
func TestOpenWaitsForAClosedWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := Open(dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	copied := directoryLock(dir)
	if locked, err := copied.TryLock(); err != nil || !locked {
		t.Skipf("this system cannot lock a directory: %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		db, err := Open(dir, quiet)
		if err == nil {
			err = db.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("opened while the directory is locked: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := copied.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesALivingWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := directoryLock(dir)
	if locked, err := other.TryLock(); err != nil || !locked {
		t.Skipf("this system cannot lock a directory: %v", err)
	}
	defer func() { _ = other.Close() }()
	if err := os.WriteFile(filepath.Join(dir, "LOCK"), []byte(strconv.Itoa(os.Getppid())), 0o600); err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := Open(dir, quiet); !errors.As(err, &locked) || locked.PID != os.Getppid() {
		t.Errorf("have %v", err)
	}
	if err := CheckUnlocked(dir); !errors.As(err, &locked) || locked.PID != os.Getppid() {
		t.Errorf("have %v", err)
	}
}
