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

// snapshot puts the log in dir, as it stands, into a directory of its own,
// from which it can be read while a run goes on writing: nothing there is
// changed or waited for. Value logs that are full, by far the most of a log, are
// linked: only collect deletes them, and not while their files are locked. The
// rest is copied: the manifest, the write-ahead logs and the newest value log
// end in the middle of a write, and a table Badger empties before it deletes it,
// whatever other names it has. Badger's repair of a torn end, which would cut a
// value log at a flipped byte as well, then happens to the copy.
//
// For a rehearsal, which only looks at the end, tables are linked too: nobody
// else has the log open, or the writer will not get it.
//
// remove takes the snapshot away. repairable reports that Badger may put the
// copy in order: asked for, or needed because the log was not closed.
func snapshot(dir string, repair bool) (copied string, repairable bool, remove func() error, err error) {
	parent := filepath.Dir(filepath.Clean(dir))
	removeAbandoned(parent)
	pattern := fmt.Sprintf("%s%d-*", SnapshotPrefix, os.Getpid())
	copied, err = os.MkdirTemp(parent, pattern)
	if err != nil { // a backup that cannot be written to
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
	for range snapshotAttempts {
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
	// snapshotAttempts bounds how often a snapshot starts over because Badger
	// moved a table meanwhile; it does so every few seconds at most.
	snapshotAttempts = 20
	// linkFromBytes is far above the 20 bytes of an empty value log.
	linkFromBytes = 64 << 10
)

// errMoved says that the store's set of files changed while it was copied.
var errMoved = errors.New("the store keeps changing its files")

// copyStore copies what belongs together. The order matters: a table comes into
// the manifest before its write-ahead log goes, and a value is on disk before
// the write-ahead log points at it. So, with the same manifest before and
// after, no table or write-ahead log can have gone missing in between, and a
// value log that is copied last holds every value that is pointed at. Unless
// locked, value logs may go meanwhile: they are copied, and must still be there
// in the end.
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
	// A value log may have come up since.
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

// shrunk reports whether a file is not as long any more as its copy.
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

// linkFile gives a file a second name; between file systems it is copied. So
// is a small one: Badger deletes empty value logs when it opens, and it empties
// a file before it deletes it, whatever other names the file has.
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

// copyTable copies a file that has no holes: the kernel does it, and on some
// file systems without copying.
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

// copyFile copies a file and keeps its holes: Badger makes files larger than
// what it has written.
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

// removeAbandoned takes away snapshots of readers that were killed: the links
// would keep the space of files that the store has deleted. One that cannot be
// removed is left to the next reader.
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
