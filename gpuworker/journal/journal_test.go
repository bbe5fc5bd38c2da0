package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/gpuworker/journal"
)

func open(t *testing.T, dir string, options journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// messages are n rollouts of different groups.
func messages(n int) []events.Message {
	out := make([]events.Message, n)
	for i := range out {
		out[i] = bustest.Encode(bustest.CodeSampled(bustest.Posed("r1", 1, i)))
	}
	return out
}

func has(t *testing.T, j *journal.Journal, m *events.Message) bool {
	t.Helper()
	got, ok, err := j.Get(m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if ok && (got.Envelope != m.Envelope || got.Encoding != m.Encoding || !bytes.Equal(got.Data, m.Data)) {
		t.Errorf("event %s came back changed:\n%s", m.ID, cmp.Diff(*m, got))
	}
	return ok
}

func TestJournalSurvivesAReopen(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	all := messages(20)
	if err := j.Put(all); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Get(all[0].ID); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Get on a closed journal: %v", err)
	}
	if err := j.Put(all); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Put on a closed journal: %v", err)
	}

	j = open(t, dir, journal.Options{})
	for i := range all {
		if !has(t, j, &all[i]) {
			t.Errorf("message %d is gone", i)
		}
	}
	if _, ok, err := j.Get("00000000000000000000000000000000"); ok || err != nil {
		t.Errorf("an unknown id: %v, %v", ok, err)
	}
}

func TestJournalKeepsTheFirstOfAnID(t *testing.T) {
	j := open(t, t.TempDir(), journal.Options{})
	first := messages(1)
	second := messages(1)
	second[0].Source = "another-worker"
	for _, m := range [][]events.Message{first, second} {
		if err := j.Put(m); err != nil {
			t.Fatal(err)
		}
	}
	has(t, j, &first[0])
}

func TestJournalDropsTheOldest(t *testing.T) {
	dir := t.TempDir()
	all := messages(30)
	kept := func(j *journal.Journal) int {
		n := 0
		for i := range all {
			if has(t, j, &all[i]) {
				n++
			} else if n > 0 {
				t.Errorf("message %d is gone, an older one is not", i)
			}
		}
		return n
	}
	j := open(t, dir, journal.Options{MaxEntries: 10})
	for i := range all[:25] {
		if err := j.Put(all[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	// What was counted before counts after, and the bound may change.
	j = open(t, dir, journal.Options{MaxEntries: 7})
	if err := j.Put(all[25:]); err != nil {
		t.Fatal(err)
	}
	if n := kept(j); n != 7 {
		t.Errorf("%d messages kept, want 7", n)
	}
	if !has(t, j, &all[29]) {
		t.Error("the newest message is gone")
	}

	// The byte bound holds as well: room for fewer than three of them.
	j = open(t, t.TempDir(), journal.Options{MaxBytes: 3 * int64(len(all[0].Data))})
	if err := j.Put(all); err != nil {
		t.Fatal(err)
	}
	if n := kept(j); n < 1 || n > 2 {
		t.Errorf("%d messages kept within three times one's payload", n)
	}
}

// A batch is written piece by piece, and goes on in another segment where one
// is full.
func TestJournalTakesMoreThanASegmentHolds(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	all := make([]events.Message, 50)
	for i := range all {
		all[i] = bustest.Encode(bustest.Posed("r1", 2, i%bustest.Groups))
		all[i].ID = fmt.Sprintf("%032x", i)
		all[i].Data = bytes.Repeat([]byte{byte(i)}, 1<<20)
	}
	if err := j.Put(all); err != nil {
		t.Fatal(err)
	}
	if n := len(segments(t, dir)); n != 2 {
		t.Errorf("%d segments, want 2", n)
	}
	for range 2 {
		for i := range all {
			if !has(t, j, &all[i]) {
				t.Errorf("message %d is gone", i)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = open(t, dir, journal.Options{})
	}
	// What has no entry left takes no room.
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir, journal.Options{MaxEntries: 5})
	if n := len(segments(t, dir)); n != 1 {
		t.Errorf("%d segments for the newest five messages, want 1", n)
	}
	for i := range all {
		if got := has(t, j, &all[i]); got != (i >= len(all)-5) {
			t.Errorf("message %d is there: %v", i, got)
		}
	}
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Many who journal at once wait for the disk together.
func TestJournalTakesManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{MaxEntries: 150})
	all := messages(200)
	var group errgroup.Group
	for i := range all {
		group.Go(func() error {
			if err := j.Put(all[i : i+1]); err != nil {
				return err
			}
			_, _, err := j.Get(all[i].ID)
			return err
		})
	}
	if err := errors.Join(group.Wait(), j.Close()); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir, journal.Options{MaxEntries: 150})
	kept := 0
	for i := range all {
		if has(t, j, &all[i]) {
			kept++
		}
	}
	if kept != 150 {
		t.Errorf("%d messages kept, want 150", kept)
	}
}

func TestJournalInUse(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, journal.Options{})
	if _, err := journal.Open(dir, journal.Options{}); !errors.Is(err, journal.ErrInUse) {
		t.Errorf("a second opener got %v", err)
	}
}

func BenchmarkPut(b *testing.B) {
	j, err := journal.Open(b.TempDir(), journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	m := messages(1)
	for i := 0; b.Loop(); i++ {
		m[0].ID = fmt.Sprintf("%032x", i)
		if err := j.Put(m); err != nil {
			b.Fatal(err)
		}
	}
}

// What a build left that kept its journal in Badger is of no use to this one.
func TestJournalTakesThePlaceOfOneInBadger(t *testing.T) {
	dir := t.TempDir()
	old, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(dir, journal.Options{}); !errors.Is(err, journal.ErrInUse) {
		t.Errorf("beside a writer of the old kind: %v", err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	j := open(t, dir, journal.Options{})
	all := messages(3)
	if err := j.Put(all); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("%v: %v", files, err)
	}
	if !has(t, j, &all[2]) {
		t.Error("a message is gone")
	}
}
