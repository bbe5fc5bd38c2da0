package badgerdir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// snapshot copies the directory to a directory of its own, which can be read while
// a writer goes on. It changes nothing in dir and never waits. Full value
// logs, most of the data, are hard links: they are deleted only under the lock of
// LockFiles. The other files are copied: manifest, write-ahead logs and the newest
// value log end within a write, and Badger truncates a table before it deletes it,
// which a hard link would show. Badger's repair of a torn end changes only the
// copy.
//
// For a repair, tables are linked too: no writer has the directory open.
//
// remove removes the snapshot. repairable reports that Badger may repair the copy:
// for a rehearsal, or because the directory was not closed.
func snapshot(dir string, repair bool) (copied string, repairable bool, remove func() error, err error) {
	parent := filepath.Dir(filepath.Clean(dir))
	removeAbandoned(parent)
	pattern := fmt.Sprintf("%s%d-*", SnapshotPrefix, os.Getpid())
	copied, err = os.MkdirTemp(parent, pattern)
	if err != nil { // a read-only backup
		copied, err = os.MkdirTemp("", pattern)
	}
	if err != nil {
		return "", false, nil, fmt.Errorf("read log %s: %w", dir, err)
	}
	unlock, locked, lockErr := LockFiles(dir, false)
	if lockErr != nil || !locked {
		unlock, locked = func() {}, false
	}
	remove = func() error {
		unlock()
		return os.RemoveAll(copied)
	}
	for range snapshotTries {
		repairable, err = copyStore(dir, copied, repair, locked)
		if !errors.Is(err, errMoved) {
			break
		}
		if err := clearDir(copied); err != nil {
			return "", false, nil, errors.Join(err, remove())
		}
	}
	if err != nil {
		return "", false, nil, errors.Join(fmt.Errorf("read log %s: %w", dir, err), remove())
	}
	return copied, repairable, remove, nil
}

const (
	// SnapshotPrefix begins the names of snapshots beside a directory; the
	// process ID follows.
	SnapshotPrefix = ".log-read-"
	// snapshotTries bounds the copies of one snapshot. Badger changes its files every
	// few seconds at most.
	snapshotTries = 20
	// linkFromBytes is the size from which a file is linked. An empty value log has
	// 20 bytes.
	linkFromBytes = 64 << 10
)

// errMoved says that the set of files changed during the copy.
var errMoved = errors.New("the store keeps changing its files")

// copyStore copies a consistent set of files. The order matters: Badger adds a
// table to the manifest before it deletes the write-ahead log, and writes a value
// before the key in the write-ahead log. So if the manifest is the same before and
// after, no table or write-ahead log is missing, and a value log that is copied
// last has every value that a key needs. Without the lock of LockFiles value logs
// may be deleted meanwhile: they are copied, and must still exist at the end.
func copyStore(from, to string, repair, locked bool) (live bool, err error) {
	manifest, err := os.ReadFile(filepath.Join(from, badger.ManifestFilename))
	if err != nil {
		return false, err
	}
	var tables, memTables, valueLogs []string
	entries, err := os.ReadDir(from) // sorted: older files first
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case TableSuffix:
			tables = append(tables, e.Name())
		case MemTableSuffix:
			memTables = append(memTables, e.Name())
		case ValueLogSuffix:
			valueLogs = append(valueLogs, e.Name())
		}
	}
	live = repair || len(memTables) > 0
	place := copyTable
	if repair {
		place = linkFile
	}
	for _, name := range tables {
		if err := place(from, to, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return live, err
		}
	}
	for _, name := range append(memTables, otherFiles...) {
		if err := copyFile(from, to, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return live, err
		}
	}
	// The writer may have added a value log.
	newer, err := filepath.Glob(filepath.Join(from, "*"+ValueLogSuffix))
	if err != nil {
		return live, err
	}
	for _, path := range newer {
		if name := filepath.Base(path); !slices.Contains(valueLogs, name) {
			valueLogs = append(valueLogs, name)
		}
	}
	slices.Sort(valueLogs)
	for i, name := range valueLogs {
		place := linkFile
		if !locked || live && i == len(valueLogs)-1 {
			place = copyFile
		}
		if err := place(from, to, name); errors.Is(err, fs.ErrNotExist) {
			return live, errMoved
		} else if err != nil {
			return live, err
		}
	}
	if !locked && shrunk(from, to, valueLogs) {
		return live, errMoved
	}
	after, err := os.ReadFile(filepath.Join(from, badger.ManifestFilename))
	if err != nil {
		return live, err
	}
	if !bytes.Equal(manifest, after) {
		return live, errMoved
	}
	return live, os.WriteFile(filepath.Join(to, badger.ManifestFilename), manifest, 0o600)
}

// shrunk reports whether a file is shorter than its copy, or does not exist.
func shrunk(from, to string, names []string) bool {
	for _, name := range names {
		was, err := os.Stat(filepath.Join(to, name))
		if err != nil {
			return true
		}
		is, err := os.Stat(filepath.Join(from, name))
		if err != nil || is.Size() < was.Size() {
			return true
		}
	}
	return false
}

// linkFile makes a hard link. It copies between file systems, and it copies small
// files: Badger deletes empty value logs when it opens, and truncates a file before
// it deletes it.
func linkFile(from, to, name string) error {
	info, err := os.Stat(filepath.Join(from, name))
	if err != nil {
		return err
	}
	if info.Size() < linkFromBytes {
		return copyFile(from, to, name)
	}
	err = os.Link(filepath.Join(from, name), filepath.Join(to, name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return copyFile(from, to, name)
}

// copyTable copies a file without holes. The kernel does it, on some file systems
// without copying the data.
func copyTable(from, to, name string) error {
	in, err := os.Open(filepath.Join(from, name))
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(to, name))
	if err != nil {
		return errors.Join(err, in.Close())
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, in.Close(), out.Close())
}

// copyFile copies a file and keeps its holes: Badger's files are larger than their
// data.
func copyFile(from, to, name string) (err error) {
	in, err := os.Open(filepath.Join(from, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.Create(filepath.Join(to, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	block, zero := make([]byte, 128<<10), make([]byte, 128<<10)
	var offset int64
	for {
		n, err := io.ReadFull(in, block)
		if n > 0 && !bytes.Equal(block[:n], zero[:n]) {
			if _, err := out.WriteAt(block[:n], offset); err != nil {
				return err
			}
		}
		offset += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out.Truncate(offset)
		}
		if err != nil {
			return err
		}
	}
}

func clearDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// removeAbandoned removes the snapshots of killed readers: their links keep the
// disk space of deleted files. A snapshot that cannot be removed is left to the
// next reader.
func removeAbandoned(parent string) {
	left, err := filepath.Glob(filepath.Join(parent, SnapshotPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range left {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), SnapshotPrefix), "-")
		if pid, err := strconv.Atoi(owner); err == nil && !processLives(pid) {
			_ = os.RemoveAll(path)
		}
	}
}
