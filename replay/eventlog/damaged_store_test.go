package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/replay/eventlog/internal/badgerdir"
	"codea1/replay/internal/replaytest"
)

// A truncated or missing manifest removes no event: Badger would delete the tables
// that it does not name.
func TestLostManifest(t *testing.T) {
	t.Parallel()
	closed := func(t *testing.T) (dir, manifest string) {
		dir = t.TempDir()
		for slot := range 3 { // a table each
			l := openLog(t, dir, scratch)
			mustAppend(t, l, at(3*slot, replaytest.Group(t, slot)...))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return dir, filepath.Join(dir, badger.ManifestFilename)
	}
	refused := func(t *testing.T, dir string, options Options) {
		t.Helper()
		before := filesIn(t, dir)
		var corrupt *CorruptError
		if l, err := Open(dir, options); !errors.As(err, &corrupt) {
			t.Errorf("read-only %v: %v", options.ReadOnly, err)
			if err == nil {
				last, _ := l.Last()
				t.Errorf("with %d events", last)
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		delete(before, "LOCK")
		after := filesIn(t, dir)
		delete(after, "LOCK")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("the damaged log was changed (-before +after):\n%s", diff)
		}
	}
	t.Run("cut off", func(t *testing.T) {
		dir, manifest := closed(t)
		whole, err := os.ReadFile(manifest)
		if err != nil {
			t.Fatal(err)
		}
		for cut := range whole {
			if !thorough() && cut%7 != 0 {
				continue
			}
			if err := os.WriteFile(manifest, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, dir, Options{ReadOnly: true, Scratch: true})
			refused(t, dir, scratch)
		}
		if err := os.WriteFile(manifest, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if last, _ := openLog(t, dir, scratch).Last(); last != 9 {
			t.Errorf("whole again: %d events", last)
		}
	})
	t.Run("gone", func(t *testing.T) {
		dir, manifest := closed(t)
		if err := os.Remove(manifest); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, scratch)
	})
}

// onlyTable returns the path and the content of a store's only table.
func onlyTable(t *testing.T, dir string) (path string, whole []byte) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "*"+badgerdir.TableSuffix))
	if err != nil || len(tables) != 1 {
		t.Fatalf("tables %v, %v", tables, err)
	}
	whole, err = os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	return tables[0], whole
}

// A truncated table, or one with a damaged end, is an error and does not end the
// process.
func TestDamagedTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, scratch)
	mustAppend(t, l, at(0, replaytest.Group(t, 1)...))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path, whole := onlyTable(t, dir)
	check := func(what string, bytes []byte) {
		t.Helper()
		if err := os.WriteFile(path, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, options := range []Options{{ReadOnly: true, Scratch: true}, scratch} {
			var corrupt *CorruptError
			if _, err := Open(dir, options); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), filepath.Base(path)) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	for _, left := range []int{0, 1, 3, 4, 8, 20, len(whole) / 2, len(whole) - 1} {
		check(fmt.Sprintf("%d of %d bytes", left, len(whole)), whole[:left])
	}
	for back := 1; back <= 16; back++ {
		flipped := bytes.Clone(whole)
		flipped[len(whole)-back] ^= 0x41
		check(fmt.Sprintf("a flipped byte %d before the end", back), flipped)
	}
}

// A block of a table that cannot be read is an error, not the end of an iteration.
func TestDamagedBlock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, scratch)
	const groups = 200
	for slot := range groups {
		mustAppend(t, l, at(3*slot, replaytest.Group(t, slot)...))
	}
	event := valueOf(t, l, groups-1)[40:72] // small enough for a table
	ended, err := replaytest.Group(t, groups/2)[2].Decode()
	if err != nil {
		t.Fatal(err)
	}
	deltas := encodeDeltas(ended.Payload.(*events.GroupRewarded))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path, whole := onlyTable(t, dir)
	read := func(name string, needle []byte, read func(l *Log) error) {
		t.Helper()
		flipped := bytes.Clone(whole)
		i := bytes.Index(flipped, needle)
		if i < 0 {
			t.Fatalf("%s: not in the table", name)
		}
		flipped[i] ^= 0x10
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		l, err := Open(dir, Options{ReadOnly: true, Scratch: true})
		if err == nil {
			err = errors.Join(read(l), l.Close())
		}
		if !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	read("an event", event, func(l *Log) (err error) {
		for _, scanErr := range l.Read(t.Context(), ReadOptions{}) {
			err = scanErr
		}
		return err
	})
	read("an event, to a place behind it", event, func(l *Log) (err error) {
		for _, scanErr := range l.Read(t.Context(), ReadOptions{To: 2 * groups}) {
			err = scanErr
		}
		return err
	})
	read("changes of the book", deltas, func(l *Log) error {
		_, err := l.BookAt(t.Context(), 3*groups)
		return err
	})
}

// The log of a killed writer ends in a write-ahead log. A torn end loses messages that
// were not acknowledged; a flipped byte before it is an error.
func TestFlippedByteInAWriteAheadLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, scratch)
	for slot := range 50 {
		mustAppend(t, l, at(3*slot, replaytest.Group(t, slot)...))
	}
	// killed returns a copy of the log with a changed write-ahead log.
	killed := func(change func(raw []byte, end int)) string {
		copied := copySparse(t, dir)
		paths, err := filepath.Glob(filepath.Join(copied, "*"+badgerdir.MemTableSuffix))
		if err != nil || len(paths) != 1 {
			t.Fatalf("write-ahead logs %v, %v", paths, err)
		}
		raw, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		change(raw, len(bytes.TrimRight(raw, "\x00")))
		writeSparse(t, paths[0], raw)
		return copied
	}
	places := []int{50}
	if thorough() {
		places = []int{0, 10, 50, 90}
	}
	for _, percent := range places {
		dir := killed(func(raw []byte, end int) { raw[badgerdir.WALStart+(end-badgerdir.WALStart)*percent/100] ^= 0x10 })
		before := filesIn(t, dir)
		for _, options := range []Options{{ReadOnly: true, Scratch: true}, scratch} {
			var corrupt *CorruptError
			if _, err := Open(dir, options); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), badgerdir.MemTableSuffix+" is damaged at byte") {
				t.Errorf("a byte flipped after %d%%, read-only %v: %v", percent, options.ReadOnly, err)
			}
		}
		if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
			t.Errorf("the damaged log was changed (-before +after):\n%s", diff)
		}
	}
	for name, change := range map[string]func(raw []byte, end int){
		"whole":                    func([]byte, int) {},
		"torn":                     func(raw []byte, end int) { clear(raw[end-50 : end]) },
		"torn in an early page":    func(raw []byte, end int) { clear(raw[end-500 : end-400]) },
		"torn in the middle":       func(raw []byte, end int) { clear(raw[end/2 : end]) },
		"its last byte is another": func(raw []byte, end int) { raw[end-1] ^= 0x10 },
	} {
		if !thorough() && name != "whole" && name != "torn in the middle" {
			continue
		}
		l := openLog(t, killed(change), scratch)
		if report := mustVerify(t, l); name == "whole" && report.Events != 150 || report.Events < 70 {
			t.Errorf("%s: %d events", name, report.Events)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// copySparse copies a directory, with the holes of its files.
func copySparse(t *testing.T, dir string) (copied string) {
	t.Helper()
	copied = filepath.Join(scratchDir(t), "log")
	if err := os.Mkdir(copied, 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		writeSparse(t, filepath.Join(copied, e.Name()), raw)
	}
	return copied
}

// writeSparse writes a file with a hole in place of the zeros at its end.
func writeSparse(t *testing.T, path string, raw []byte) {
	t.Helper()
	err := os.WriteFile(path, bytes.TrimRight(raw, "\x00"), 0o600)
	if err == nil {
		err = os.Truncate(path, int64(len(raw)))
	}
	if err != nil {
		t.Fatal(err)
	}
}
