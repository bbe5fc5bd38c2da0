//go:build linux || darwin

package replay

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"
)

// lockFiles keeps the files of a log from being deleted: readers whose
// snapshots share files hold it together, and who wants to delete files alone.
// It never waits; ok is false if the others hold it.
//
// What is locked is a file that every store has and that never changes.
func lockFiles(dir string, alone bool) (unlock func(), ok bool, err error) {
	file, err := os.Open(filepath.Join(dir, badger.KeyRegistryFileName))
	if err != nil {
		return nil, false, err
	}
	how := unix.LOCK_SH
	if alone {
		how = unix.LOCK_EX
	}
	err = unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
	if err == nil {
		return func() { _ = file.Close() }, true, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = nil
	}
	return nil, false, errors.Join(err, file.Close())
}

// isWritten reports whether a writer has a log open. Its lock is Badger's, of
// the directory.
func isWritten(dir string) bool {
	file, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	return errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// removeEmptyFiles removes what a writer leaves that is killed between making a
// file and giving it its length: Badger does not open a store that has one. It
// does nothing while a writer has the store open.
func removeEmptyFiles(dir string) error {
	folder, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }() // unlocks
	if unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil // opening the store says so
	}
	entries, err := folder.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != memTableSuffix && ext != valueLogSuffix {
			continue
		}
		if info, err := e.Info(); err != nil || info.Size() > 0 {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
