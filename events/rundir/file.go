package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Permissions of a run directory and of a file with a secret in it. Other files get
// those that the umask leaves of FileMode.
const (
	DirMode    fs.FileMode = 0o700
	FileMode   fs.FileMode = 0o644
	SecretMode fs.FileMode = 0o600
)

// WriteFile writes a file with the permissions that the umask leaves of mode. If the
// process or the machine dies meanwhile, the file has its old content or the new
// one.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	aside := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s-%016x", filepath.Base(path), rand.Uint64()))
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(aside))
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir flushes the names in a directory to disk, for example after a rename.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
