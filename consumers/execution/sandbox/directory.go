package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

const rootPrefix = "codea1-sandbox-"

// makeRoot makes a private directory that belongs to the pool while the lock is
// open. It removes the directories of pools that were killed.
func makeRoot() (root string, lock *flock.Flock, err error) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), rootPrefix+"*"))
	for _, directory := range left {
		removeAbandoned(directory, removeAll)
	}
	return ownDirectory(func() (string, error) { return os.MkdirTemp("", rootPrefix) })
}

// ownDirectory makes a directory and locks it. The kernel releases the lock when
// the file is closed or the process ends.
func ownDirectory(make func() (string, error)) (string, *flock.Flock, error) {
	for tries := 1; ; tries++ {
		directory, err := make()
		if err != nil {
			return "", nil, err
		}
		lock, err := lockDirectory(directory)
		if err == nil || tries == 10 {
			return directory, lock, err
		}
		// Another process removed it as abandoned before it was locked.
	}
}

// lockDirectory locks a directory. It returns os.ErrNotExist if another process
// has replaced or removed the directory meanwhile.
func lockDirectory(path string) (*flock.Flock, error) {
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = syscall.EWOULDBLOCK
	}
	if err == nil {
		var there, here os.FileInfo
		if there, err = os.Lstat(path); err == nil {
			if here, err = lock.Stat(); err == nil && !os.SameFile(here, there) {
				err = os.ErrNotExist
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// removeAbandoned removes a directory of this user that belongs to no process. It
// holds the directory's lock meanwhile: a process that has just made the directory
// then fails to lock it and makes another one. A directory that cannot be removed
// does no harm.
func removeAbandoned(path string, remove func(path string) error) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
		return
	}
	lock, err := lockDirectory(path)
	if err != nil {
		return
	}
	_ = remove(path)
	_ = lock.Close()
}

// removeAll is os.RemoveAll for a tree with directories that may not be readable:
// a candidate can kill its fork server before that has tidied up.
func removeAll(root string) error {
	unlock := func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // a failure shows again in RemoveAll
		}
		return nil
	}
	_ = filepath.WalkDir(root, unlock)
	return os.RemoveAll(root)
}
