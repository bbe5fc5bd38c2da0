package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	if d := cmp.Diff(*m, got); ok && d != "" {
		t.Errorf("event %s came back changed:\n%s", m.ID, d)
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

func TestJournalTakesMoreThanOneTransactionHolds(t *testing.T) {
	j := open(t, t.TempDir(), journal.Options{})
	// Small values count against Badger's transaction limit of about 1.2 MB.
	all := make([]events.Message, 6000)
	for i := range all {
		all[i] = bustest.Encode(bustest.Posed("r1", 2, i%bustest.Groups))
		all[i].ID = fmt.Sprintf("%032x", i)
		all[i].Data = all[i].Data[:100]
	}
	if err := j.Put(all); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(all); i += 500 {
		if !has(t, j, &all[i]) {
			t.Errorf("message %d is gone", i)
		}
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

// A process killed between making a file and giving it its length leaves an
// empty one.
func TestJournalOpensWithEmptyFiles(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{})
	all := messages(3)
	if err := errors.Join(j.Put(all), j.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"00099.mem", "000099.vlog"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j = open(t, dir, journal.Options{})
	for i := range all {
		if !has(t, j, &all[i]) {
			t.Errorf("message %d is gone", i)
		}
	}
}
