package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/replay/eventlog/internal/badgerdir"
	"codea1/replay/internal/replaytest"
)

func (l *Log) deleteKeys(keys ...[]byte) error {
	return l.db.Update(func(txn *badger.Txn) error {
		for _, k := range keys {
			if err := txn.Delete(k); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *Log) setKey(key, value []byte) error {
	return l.db.Update(func(txn *badger.Txn) error { return txn.Set(key, value) })
}

func (l *Log) setEvent(seq uint64, meta byte, value []byte) error {
	return l.db.Update(func(txn *badger.Txn) error {
		return txn.SetEntry(badger.NewEntry(eventKey(seq), value).WithMeta(meta))
	})
}

// TestVerifyFinds damages the store in one place at a time.
func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		want   string
		seq    uint64
		damage func(t *testing.T, l *Log) error
	}{
		{"a flipped byte of a payload", "payload is not the one that was appended", 2, func(t *testing.T, l *Log) error {
			value := valueOf(t, l, 2)
			value[len(value)-1] ^= 1
			return l.setEvent(2, 3, value)
		}},
		{"a flipped byte of an envelope", "hash chain breaks", 3, func(t *testing.T, l *Log) error {
			value := valueOf(t, l, 3)
			return l.setEvent(3, 6, bytes.Replace(value, []byte("rewards-0"), []byte("rewards-1"), 1))
		}},
		{"a missing event", "event is missing", 2, func(t *testing.T, l *Log) error { return l.deleteKeys(eventKey(2)) }},
		{"a missing end", "2 events, but the head says 3", 3, func(t *testing.T, l *Log) error { return l.deleteKeys(eventKey(3)) }},
		{"a missing index", "leads to event 0", 1, func(t *testing.T, l *Log) error {
			id := parseID(allMessages(t, l, ReadOptions{})[0].ID)
			return errors.Join(l.storeChunk(true), l.deleteKeys(bucketKey(bucketOf(id), 1)))
		}},
		{"an index that leads elsewhere", "index of its id leads to event 3", 2, func(t *testing.T, l *Log) error {
			id := parseID(allMessages(t, l, ReadOptions{})[1].ID)
			return errors.Join(l.storeChunk(true), l.setKey(bucketKey(bucketOf(id), 1), appendIndexEntry(nil, indexEntry{id, 3})))
		}},
		{"an index too many", "index has 4 events up to event 3, the log has 3", 0, func(t *testing.T, l *Log) error {
			return errors.Join(l.storeChunk(true), l.setKey(bucketKey(0, 2), appendIndexEntry(nil, indexEntry{eventID{0, 1}, 2})))
		}},
		{"an index in another bucket", "wrong bucket", 0, func(t *testing.T, l *Log) error {
			return errors.Join(l.storeChunk(true), l.setKey(bucketKey(7, 2), appendIndexEntry(nil, indexEntry{eventID{0, 1}, 2})))
		}},
		{"a cut index", "cannot be read", 0, func(t *testing.T, l *Log) error {
			return errors.Join(l.storeChunk(true), l.setKey(bucketKey(0, 2), appendIndexEntry(nil, indexEntry{eventID{0, 1}, 2})[:23]))
		}},
		{"an index behind the end", "the log with event 3", 0, func(t *testing.T, l *Log) error { return l.setKey(keyIndex, encodeSeq(4)) }},
		{"an event under two numbers", "its id is that of event 2", 4, again},
		{"an event under two numbers, one indexed", "its id is that of event 2", 4, func(t *testing.T, l *Log) error {
			return errors.Join(l.storeChunk(true), again(t, l))
		}},
		{"an event under two numbers, both indexed", "its id is that of event 2", 4, func(t *testing.T, l *Log) error {
			id := parseID(allMessages(t, l, ReadOptions{})[1].ID)
			return errors.Join(l.storeChunk(true), again(t, l), l.setKey(keyIndex, encodeSeq(4)),
				l.setKey(bucketKey(bucketOf(id), 4), appendIndexEntry(nil, indexEntry{id, 4})))
		}},
		{"a key of another type", "key says type 9", 2, func(t *testing.T, l *Log) error { return l.setEvent(2, 9, valueOf(t, l, 2)) }},
		{"a cut record", "record", 1, func(t *testing.T, l *Log) error { return l.setEvent(1, 2, valueOf(t, l, 1)[:70]) }},
		{"a head of another chain", "chain hash is not that of the head", 3, func(t *testing.T, l *Log) error {
			h := head{seq: 3}
			return l.setKey(keyHead, h.encode())
		}},
		{"a cut head", "head is malformed", 0, func(t *testing.T, l *Log) error { return l.setKey(keyHead, []byte{1}) }},
		{"other deltas", "stored changes of the mistake book are not the event's", 3, func(t *testing.T, l *Log) error {
			return l.setKey(deltaKey(3), encodeDeltas(&events.GroupRewarded{ProblemID: "p1"}))
		}},
		{"deltas of no event", "stored for 2 events, 1 have some", 0, func(t *testing.T, l *Log) error { return l.setKey(deltaKey(2), []byte{0}) }},
		{"another book", "mistake book", 0, func(t *testing.T, l *Log) error { return l.setKey(bookKey("p1", 1), nil) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := openLog(t, t.TempDir(), scratch)
			mustAppend(t, l, at(0, replaytest.Group(t, 1)...))
			mustVerify(t, l)
			if err := tt.damage(t, l); err != nil {
				t.Fatal(err)
			}
			_, err := l.Verify(t.Context(), nil)
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || corrupt.Seq != tt.seq || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("verify says %v, want %q at event %d", err, tt.want, tt.seq)
			}
		})
	}
}

// again appends event 2 of three a second time, as event 4.
func again(t *testing.T, l *Log) error {
	r, _ := readAt(t, l, 2)
	r.Seq = 4
	value, chain := encodeRecord(l.head.chain, &r)
	h := head{seq: 4, chain: chain}
	return errors.Join(l.setEvent(4, 3, value), l.setKey(keyHead, h.encode()))
}

func readAt(t *testing.T, l *Log, seq uint64) (r Record, value []byte) {
	t.Helper()
	err := l.db.View(func(txn *badger.Txn) error {
		item, err := txn.Get(eventKey(seq))
		if err != nil {
			return err
		}
		r, value, err = view{l, txn}.record(item)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, value
}

func valueOf(t *testing.T, l *Log, seq uint64) []byte {
	_, value := readAt(t, l, seq)
	return value
}

// A flipped byte of a value on disk is found by a reader, and when the log is opened
// for writing.
func TestFlippedByteOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	appendLarge(t, l, 3+tailRecords)
	needle := valueOf(t, l, 3)[1000:1040]
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if flipOnDisk(t, dir, needle) != 1 {
		t.Fatal("the value is not in one file")
	}
	l = openLog(t, dir, Options{ReadOnly: true})
	_, err := l.Verify(t.Context(), nil)
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Seq != 3 {
		t.Fatalf("verify: %v, want damage at event 3", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// Badger cuts a value log at the first entry with a wrong checksum. The writer must
	// find that before it happens to the log.
	if seq := refusedAt(t, dir); seq < 3 {
		t.Errorf("open for writing finds damage at event %d, want it from event 3 on", seq)
	}
}

// The values of a batch have no particular order in the value log, so a cut may remove
// a value that is far from the end of the log.
func TestFlippedByteAtTheEndOfTheValueLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	appendLarge(t, l, 8*tailRecords)
	needles := make(map[uint64][]byte)
	for seq := uint64(1); seq <= 8*tailRecords; seq++ {
		needles[seq] = valueOf(t, l, seq)[1000:1040]
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path, raw := newestValueLog(t, dir)
	last, place := uint64(0), -1
	for seq, needle := range needles {
		if i := bytes.Index(raw, needle); i > place {
			last, place = seq, i
		}
	}
	raw[place] ^= 0x10
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if seq := refusedAt(t, dir); seq != last {
		t.Errorf("open for writing finds damage at event %d, want %d", seq, last)
	}
}

// A kill leaves half an entry that no key names: the log opens.
func TestTornValueLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	mustAppend(t, l, at(0, replaytest.Encode(t, replaytest.Posed(0, replaytest.Noise(1, 4000)))))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path, raw := newestValueLog(t, dir)
	half := raw[badgerdir.WALStart : len(raw)/2] // as if the entry were written again
	if err := os.WriteFile(path, slices.Concat(raw, half, make([]byte, 3<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, dir, Options{})
	mustAppend(t, l, at(1, replaytest.Encode(t, replaytest.Posed(1, replaytest.Noise(2, 4000)))))
	mustVerify(t, l)
	if info, err := os.Stat(path); err != nil || info.Size() > int64(len(raw)) {
		t.Error("half an entry is still there")
	}
}

// A damaged value is found although small events follow it: those are in the tables,
// and Badger's cut leaves them.
func TestFlippedByteBehindSmallEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	p := replaytest.Posed(0, replaytest.Noise(1, 4000))
	mustAppend(t, l, at(0, replaytest.Encode(t, p)))
	needle := valueOf(t, l, 1)[1000:1040]
	for slot := 1; slot <= tailRecords; slot++ {
		mustAppend(t, l, at(slot, replaytest.Encode(t, replaytest.Posed(slot, "What is f?"))))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if flipOnDisk(t, dir, needle) != 1 {
		t.Fatal("the value is not in one file")
	}
	if seq := refusedAt(t, dir); seq != 1 {
		t.Errorf("open for writing finds damage at event %d, want 1", seq)
	}
}

// refusedAt opens a damaged log for writing and returns the event in the error. The log
// must not change.
func refusedAt(t *testing.T, dir string) (seq uint64) {
	t.Helper()
	before := filesIn(t, dir)
	var corrupt *CorruptError
	if _, err := Open(dir, Options{}); !errors.As(err, &corrupt) {
		t.Fatalf("open for writing: %v, want damage", err)
	}
	if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
		t.Fatalf("the damaged log was changed (-before +after):\n%s", diff)
	}
	return corrupt.Seq
}

// appendLarge appends one batch of n events that go to the value log.
func appendLarge(t *testing.T, l *Log, n int) {
	t.Helper()
	var messages []events.Message
	for slot := range n {
		p := replaytest.Posed(slot, "What is f?")
		replaytest.Encode(t, p)
		messages = append(messages, replaytest.Encode(t, replaytest.Sampled(p, replaytest.Noise(slot, 4000))))
	}
	mustAppend(t, l, recorded(0, messages...)) // without their causes
}

// newestValueLog returns the value log that Badger repairs at the next opening.
func newestValueLog(t *testing.T, dir string) (path string, raw []byte) {
	t.Helper()
	path, end, err := badgerdir.ValueLogEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if data := len(bytes.TrimRight(raw, "\x00")); int64(data) != end {
		t.Fatalf("the value log has data up to byte %d, want %d", end, data)
	}
	return path, raw
}

// filesIn returns a hash of every file of a directory, of its data and its size.
func filesIn(t *testing.T, dir string) map[string]Hash {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]Hash)
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		data := bytes.TrimRight(raw, "\x00") // hashing a hole would take most of the test
		files[e.Name()] = hashOf(fmt.Appendf(data[:len(data):len(data)], " of %d bytes", len(raw)))
	}
	return files
}

// flipOnDisk flips a bit in every file that holds needle.
func flipOnDisk(t *testing.T, dir string, needle []byte) (flipped int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(raw, needle); i >= 0 {
			raw[i] ^= 0x10
			flipped++
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return flipped
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	t.Run("a second opener", func(t *testing.T) {
		dir := t.TempDir()
		openLog(t, dir, Options{})
		_, err := Open(dir, Options{})
		var inUse *InUseError
		if !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
			t.Errorf("second opener: %v", err)
		}
	})
	t.Run("a log that is not there", func(t *testing.T) {
		if _, err := Open(t.TempDir(), Options{ReadOnly: true}); !errors.Is(err, ErrNoLog) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(file, Options{}); err == nil {
			t.Error("opened a file")
		}
	})
	t.Run("a newer format", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir, Options{})
		if err := errors.Join(l.setKey(keyFormat, []byte{FormatVersion + 1}), l.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Options{}); !errors.Is(err, ErrNewerFormat) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a lost end", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir, Options{})
		mustAppend(t, l, at(0, replaytest.Group(t, 1)...))
		if err := errors.Join(l.deleteKeys(eventKey(3)), l.Close()); err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		if _, err := Open(dir, Options{}); !errors.As(err, &corrupt) || corrupt.Seq != 3 {
			t.Errorf("%v", err)
		}
	})
	t.Run("a lost head", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir, Options{})
		mustAppend(t, l, at(0, replaytest.Group(t, 1)...))
		if err := errors.Join(l.deleteKeys(keyHead), l.Close()); err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		if _, err := Open(dir, Options{}); !errors.As(err, &corrupt) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a damaged manifest", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir, Options{})
		mustAppend(t, l, at(0, replaytest.Group(t, 1)...))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, badger.ManifestFilename), []byte("no manifest"), 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		if _, err := Open(dir, Options{}); !errors.As(err, &corrupt) {
			t.Errorf("%v", err)
		}
	})
}

func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	mustAppend(t, l, at(0, replaytest.Group(t, 1)...))
	free := uint64(reserveBytes - 1)
	l.options.free = func(string) (uint64, error) { return free, nil }
	var full *DiskFullError
	if _, err := l.Append(t.Context(), at(3, replaytest.Group(t, 2)...)); !errors.As(err, &full) || !strings.Contains(err.Error(), "255 MiB left") {
		t.Fatalf("append to a full disk: %v", err)
	}
	free <<= 1
	mustAppend(t, l, at(3, replaytest.Group(t, 2)...))
	mustVerify(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{free: func(string) (uint64, error) { return reserveBytes - 1, nil }}); !errors.As(err, &full) {
		t.Errorf("open on a full disk: %v", err)
	}
}

// A writer that is killed between creating and extending a file leaves an empty file.
// Readers and the next writer open the log.
func TestOpenWithEmptyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	if _, err := l.Append(t.Context(), []Incoming{{Message: eventstest.Encode(eventstest.Posed("r", 1, 0)), Position: "1"}}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		for _, name := range []string{"00099.mem", "000099.vlog"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l := openLog(t, dir, Options{ReadOnly: readOnly})
		if report, err := l.Verify(t.Context(), nil); err != nil || report.Events != 1 {
			t.Errorf("read-only %v: %+v, %v", readOnly, report, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
