package badgerdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
)

// Badger's file names.
const (
	TableSuffix    = ".sst"
	MemTableSuffix = ".mem" // write-ahead logs
	ValueLogSuffix = ".vlog"
)

// otherFiles are Badger's files that are neither data nor the manifest.
var otherFiles = []string{badger.KeyRegistryFileName, "DISCARD"}

// Exists reports whether dir is a Badger directory.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, badger.ManifestFilename))
	return err == nil
}

// CheckManifest returns a *DamageError for a directory that has tables and no
// manifest: Badger would delete the tables.
func CheckManifest(dir string) error {
	if Exists(dir) {
		return nil
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*"+TableSuffix))
	if err != nil || len(tables) == 0 {
		return err
	}
	return &DamageError{Reason: "has tables, for example " + filepath.Base(tables[0]) + ", but no manifest"}
}

// removeEmptyFiles removes the empty files of a writer that was killed between
// creating a file and extending it: Badger does not open a directory that has
// one. It does nothing while a writer has the directory open.
func removeEmptyFiles(dir string) error {
	lock := directoryLock(dir)
	if locked, err := lock.TryLock(); err != nil || !locked {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil // opening the directory reports the writer
		}
		return err
	}
	defer func() { _ = lock.Close() }()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != MemTableSuffix && ext != ValueLogSuffix {
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
