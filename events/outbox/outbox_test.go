package outbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/outbox"
)

func open(t *testing.T, dir string, options outbox.Options) *outbox.Outbox {
	t.Helper()
	o, err := outbox.Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// messages are n rollouts of different groups.
func messages(n int) []events.Message {
	out := make([]events.Message, n)
	for i := range out {
		out[i] = eventstest.Encode(eventstest.CodeSampled(eventstest.Posed("r1", 1, i)))
	}
	return out
}

func has(t *testing.T, o *outbox.Outbox, m *events.Message) bool {
	t.Helper()
	got, ok, err := o.Get(m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if ok && (got.Envelope != m.Envelope || got.Encoding != m.Encoding || !bytes.Equal(got.Data, m.Data)) {
		t.Errorf("event %s came back changed:\n%s", m.ID, cmp.Diff(*m, got))
	}
	return ok
}

func TestOutboxSurvivesAReopen(t *testing.T) {
	dir := t.TempDir()
	o := open(t, dir, outbox.Options{})
	all := messages(20)
	if err := o.Put(all); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.Get(all[0].ID); !errors.Is(err, outbox.ErrClosed) {
		t.Errorf("Get on a closed outbox: %v", err)
	}
	if err := o.Put(all); !errors.Is(err, outbox.ErrClosed) {
		t.Errorf("Put on a closed outbox: %v", err)
	}

	o = open(t, dir, outbox.Options{})
	for i := range all {
		if !has(t, o, &all[i]) {
			t.Errorf("message %d is gone", i)
		}
	}
	if _, ok, err := o.Get("00000000000000000000000000000000"); ok || err != nil {
		t.Errorf("an unknown id: %v, %v", ok, err)
	}
}

func TestOutboxKeepsTheFirstOfAnID(t *testing.T) {
	o := open(t, t.TempDir(), outbox.Options{})
	first := messages(1)
	second := messages(1)
	second[0].Source = "another-worker"
	for _, m := range [][]events.Message{first, second} {
		if err := o.Put(m); err != nil {
			t.Fatal(err)
		}
	}
	has(t, o, &first[0])
}

func TestOutboxDropsTheOldest(t *testing.T) {
	dir := t.TempDir()
	all := messages(30)
	kept := func(o *outbox.Outbox) int {
		n := 0
		for i := range all {
			if has(t, o, &all[i]) {
				n++
			} else if n > 0 {
				t.Errorf("message %d is gone, an older one is not", i)
			}
		}
		return n
	}
	o := open(t, dir, outbox.Options{MaxMessages: 10})
	for i := range all[:25] {
		if err := o.Put(all[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	// A reopened outbox counts the old messages, and its bound may change.
	o = open(t, dir, outbox.Options{MaxMessages: 7})
	if err := o.Put(all[25:]); err != nil {
		t.Fatal(err)
	}
	if n := kept(o); n != 7 {
		t.Errorf("%d messages kept, want 7", n)
	}
	if !has(t, o, &all[29]) {
		t.Error("the newest message is gone")
	}

	// The byte bound also holds: there is room for fewer than three messages.
	o = open(t, t.TempDir(), outbox.Options{MaxBytes: 3 * int64(len(all[0].Data))})
	if err := o.Put(all); err != nil {
		t.Fatal(err)
	}
	if n := kept(o); n < 1 || n > 2 {
		t.Errorf("%d messages kept within three times one's payload", n)
	}
}

// A large batch is written in parts, and continues in a new segment if one is
// full.
func TestOutboxTakesMoreThanASegmentHolds(t *testing.T) {
	dir := t.TempDir()
	o := open(t, dir, outbox.Options{})
	all := make([]events.Message, 50)
	for i := range all {
		all[i] = eventstest.Encode(eventstest.Posed("r1", 2, i%eventstest.Groups))
		all[i].ID = fmt.Sprintf("%032x", i)
		all[i].Data = bytes.Repeat([]byte{byte(i)}, 1<<20)
	}
	if err := o.Put(all); err != nil {
		t.Fatal(err)
	}
	if n := len(segments(t, dir)); n != 2 {
		t.Errorf("%d segments, want 2", n)
	}
	for range 2 {
		for i := range all {
			if !has(t, o, &all[i]) {
				t.Errorf("message %d is gone", i)
			}
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		o = open(t, dir, outbox.Options{})
	}
	// A segment without messages is deleted.
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	o = open(t, dir, outbox.Options{MaxMessages: 5})
	if n := len(segments(t, dir)); n != 1 {
		t.Errorf("%d segments for the newest five messages, want 1", n)
	}
	for i := range all {
		if got := has(t, o, &all[i]); got != (i >= len(all)-5) {
			t.Errorf("message %d is there: %v", i, got)
		}
	}
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.outbox"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Concurrent writers share a sync.
func TestOutboxTakesManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	o := open(t, dir, outbox.Options{MaxMessages: 150})
	all := messages(200)
	var group errgroup.Group
	for i := range all {
		group.Go(func() error {
			if err := o.Put(all[i : i+1]); err != nil {
				return err
			}
			_, _, err := o.Get(all[i].ID)
			return err
		})
	}
	if err := errors.Join(group.Wait(), o.Close()); err != nil {
		t.Fatal(err)
	}
	o = open(t, dir, outbox.Options{MaxMessages: 150})
	kept := 0
	for i := range all {
		if has(t, o, &all[i]) {
			kept++
		}
	}
	if kept != 150 {
		t.Errorf("%d messages kept, want 150", kept)
	}
}

func TestOutboxInUse(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, outbox.Options{})
	if _, err := outbox.Open(dir, outbox.Options{}); !errors.Is(err, outbox.ErrInUse) {
		t.Errorf("a second opener got %v", err)
	}
}

func BenchmarkPut(b *testing.B) {
	o, err := outbox.Open(b.TempDir(), outbox.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer o.Close()
	m := messages(1)
	for i := 0; b.Loop(); i++ {
		m[0].ID = fmt.Sprintf("%032x", i)
		if err := o.Put(m); err != nil {
			b.Fatal(err)
		}
	}
}
