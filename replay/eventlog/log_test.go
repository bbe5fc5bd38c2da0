package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codea1/events"
	"codea1/replay/internal/replaytest"
	"codea1/replay/mistakes"
)

func TestAppendAndReadBack(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	if seq, chain := l.Last(); seq != 0 || chain != (Hash{}) || l.Position() != events.Start {
		t.Fatalf("an empty log ends at %d, %v, %q", seq, chain, l.Position())
	}
	messages := append(replaytest.Group(t, 0), replaytest.Group(t, 299)...)
	appended := mustAppend(t, l, at(0, messages...))
	if diff := cmp.Diff(Appended{First: 1, Last: 6, Messages: messages}, appended); diff != "" {
		t.Fatal(diff)
	}

	check := func(l *Log) {
		t.Helper()
		if diff := cmp.Diff(messages, allMessages(t, l, ReadOptions{})); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(messages[4:], allMessages(t, l, ReadOptions{From: 5})); diff != "" {
			t.Errorf("read from 5 (-want +got):\n%s", diff)
		}
		want := []events.Message{messages[1], messages[2], messages[4], messages[5]}
		if diff := cmp.Diff(want, allMessages(t, l, ReadOptions{Types: []events.Type{events.TypeGroupRewarded, events.TypeCodeSampled}})); diff != "" {
			t.Errorf("read of two types (-want +got):\n%s", diff)
		}
		r, err := l.Get(t.Context(), messages[4].ID)
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if r.Seq != 5 || e.Hash() != r.PayloadHash.String() || cmp.Diff(messages[4], r.Message) != "" {
			t.Errorf("get of event 5: %+v", r)
		}
		if _, err := l.Get(t.Context(), "0123"); !errors.Is(err, ErrNotFound) {
			t.Errorf("get of what is not there: %v", err)
		}
		if l.Position() != "p5" {
			t.Errorf("position %q, want p5", l.Position())
		}
		want2 := []events.HistoricalTest{{Call: "f(3)", Expected: "0", Count: 2}, {Call: "f(4)", Expected: "0", Count: 1}}
		if diff := cmp.Diff(want2, l.Book().Top("p5", 8)); diff != "" {
			t.Errorf("top (-want +got):\n%s", diff)
		}
		report := mustVerify(t, l)
		_, chain := l.Last()
		if report.Events != 6 || report.Chain != chain || report.ByType[events.TypeCodeSampled] != 2 || report.Tests != l.Book().Size() {
			t.Errorf("report %+v", report)
		}
	}
	check(l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if _, err := l.Append(t.Context(), at(6, messages...)); !errors.Is(err, ErrClosed) {
		t.Errorf("append to a closed log: %v", err)
	}
	check(openLog(t, dir, Options{ReadOnly: true}))
}

func TestReadStops(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{})
	mustAppend(t, l, at(0, replaytest.Group(t, 1)...))
	for range l.Read(t.Context(), ReadOptions{}) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, at(3, replaytest.Group(t, 2)...)); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	if _, err := l.Get(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("get: %v", err)
	}
}

// The bus may deliver events again, late, and in any batches; a batch may begin before
// the one before is on disk; the log may be closed and opened in between. Each event is
// stored once, in the order of its first delivery, and the book is the model's.
func TestAppendEqualsModel(t *testing.T) {
	t.Parallel()
	var messages []events.Message
	for slot := range 12 {
		messages = append(messages, replaytest.Group(t, slot)...)
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir := filepath.Join(scratchDir(t), "log") // a reader's snapshot lies beside it
		l, err := Open(dir, scratch)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = l.Close() }()

		type begun struct {
			pending           *Pending
			fresh, duplicates []events.Message
		}
		var ahead []begun
		settle := func() {
			for _, b := range ahead {
				appended, err := b.pending.Wait()
				if err != nil {
					rt.Fatal(err)
				}
				if diff := cmp.Diff(b.fresh, appended.Messages); diff != "" || appended.Duplicates != len(b.duplicates) || appended.Conflicts != nil {
					rt.Fatalf("%d duplicates, want %d; new (-want +got):\n%s", appended.Duplicates, len(b.duplicates), diff)
				}
			}
			ahead = nil
		}
		seen := make(map[string]bool)
		var want []events.Message
		book := mistakes.New()
		position := 0
		for range rapid.IntRange(1, 5).Draw(rt, "batches") {
			var b begun
			var batch []events.Message
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(messages)-1), 1, 20).Draw(rt, "batch") {
				m := messages[i]
				batch = append(batch, m)
				if seen[m.ID] {
					b.duplicates = append(b.duplicates, m)
					continue
				}
				seen[m.ID] = true
				b.fresh = append(b.fresh, m)
				if m.Type == events.TypeGroupRewarded {
					e, err := m.Decode()
					if err != nil {
						rt.Fatal(err)
					}
					book.Apply(e.Payload.(*events.GroupRewarded))
				}
			}
			if b.pending, err = l.Begin(t.Context(), recorded(position, batch...)); err != nil {
				rt.Fatal(err)
			}
			position += len(batch)
			want = append(want, b.fresh...)
			ahead = append(ahead, b)
			if rapid.Bool().Draw(rt, "wait") {
				settle()
			}
			if rapid.IntRange(0, 7).Draw(rt, "reopen") == 0 {
				if err := l.Close(); err != nil {
					rt.Fatal(err)
				}
				again, err := Open(dir, scratch)
				if err != nil {
					rt.Fatal(err)
				}
				l = again
			}
		}
		settle()
		if diff := cmp.Diff(want, allMessages(t, l, ReadOptions{})); diff != "" {
			rt.Fatalf("log (-want +got):\n%s", diff)
		}
		if !bytes.Equal(book.Encode(), l.Book().Encode()) {
			rt.Fatal("book is not the model's")
		}
		for i := range messages {
			if seq, err := l.lookup(parseID(messages[i].ID)); err != nil || seq != 0 != seen[messages[i].ID] ||
				seq != 0 && want[seq-1].ID != messages[i].ID {
				rt.Fatalf("%s is found at %d: %v", messages[i].ID, seq, err)
			}
		}
		if l.Position() != events.Position(fmt.Sprintf("p%d", position-1)) {
			rt.Fatalf("position %q after %d messages", l.Position(), position)
		}
		if _, err := l.Verify(t.Context(), nil); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestBatchTooBigForATransaction(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), Options{})
	// Values below Badger's threshold count in full.
	messages := replaytest.Group(t, 1)
	for slot := 2; slot < 7000; slot++ {
		messages = append(messages, replaytest.Encode(t, replaytest.Posed(slot, strings.Repeat("?", 450))))
	}
	messages = append(messages, replaytest.Group(t, 7000)...)
	entries := at(0, messages...)
	err := func() error { // one transaction is too small
		return l.commitPart(nil, admitTo(t, l, entries).candidates, true)
	}()
	if !errors.Is(err, badger.ErrTxnTooBig) || l.Book().Size() != 0 || l.Position() != events.Start {
		t.Fatalf("commit of all at once: %v, and it left %d tests", err, l.Book().Size())
	}
	appended := mustAppend(t, l, entries)
	if appended.First != 1 || appended.Last != uint64(len(messages)) || len(appended.Messages) != len(messages) {
		t.Fatalf("appended %d to %d, %d messages of %d", appended.First, appended.Last, len(appended.Messages), len(messages))
	}
	if report := mustVerify(t, l); report.Events != uint64(len(messages)) {
		t.Fatalf("%d events", report.Events)
	}
}

// admitTo returns an admitted batch.
func admitTo(t *testing.T, l *Log, entries []Incoming) *batch {
	t.Helper()
	b, err := prepare(t.Context(), entries)
	if err != nil {
		t.Fatal(err)
	}
	if l.filter == nil {
		l.fillFilter()
	}
	if _, err := l.admit(b); err != nil {
		t.Fatal(err)
	}
	return b
}

// The book changes of one event may exceed the limit of a transaction.
func TestChangesTooBigForATransaction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	p := replaytest.Posed(1, "many")
	deltas := make([]events.BookDelta, 15_000)
	for i := range deltas {
		deltas[i] = replaytest.Delta(fmt.Sprintf("f(%d, '%0350d')", i, 0), 1)
	}
	deltas = append(deltas, replaytest.Delta("f(2)", 1))
	mustAppend(t, l, at(0, replaytest.Encode(t, p)))
	many := at(1, replaytest.Encode(t, replaytest.Rewarded(p, deltas...)))
	if err := l.commitPart(nil, admitTo(t, l, many).candidates, true); !errors.Is(err, badger.ErrTxnTooBig) {
		t.Fatalf("commit: %v", err)
	}
	mustAppend(t, l, many)
	mustAppend(t, l, at(2, replaytest.Group(t, 8)...)) // f(2) leaves, f(0) and f(3) enter
	if report := mustVerify(t, l); report.Tests != len(deltas)+1 || report.Events != 5 {
		t.Fatalf("report %+v", report)
	}
	state := l.Book().Encode()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if again := openLog(t, dir, Options{ReadOnly: true}); !bytes.Equal(state, again.Book().Encode()) {
		t.Fatal("the book is another one after opening the log again")
	}
}

func TestBookComesFromTheLogAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	for slot := range 20 {
		mustAppend(t, l, at(3*slot, replaytest.Group(t, slot)...))
	}
	state := l.Book().Encode()
	damage := func(name string, damage func() error) {
		t.Helper()
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Verify(t.Context(), nil); err == nil && name != "absent" {
			t.Errorf("%s: verify did not notice", name)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = openLog(t, dir, Options{})
		if !bytes.Equal(state, l.Book().Encode()) {
			t.Errorf("%s: the book is another one", name)
		}
		mustVerify(t, l)
	}
	first := l.Book().Tests("p1")[0]
	damage("absent", func() error { return l.deleteKeys(keyBook) })
	damage("test missing", func() error { return l.deleteKeys(bookKey("p1", first.Order)) })
	damage("test changed", func() error {
		changed := first
		changed.Count++
		return l.setKey(bookKey("p1", first.Order), changed.Append(nil))
	})
	damage("test misplaced", func() error { return l.setKey(bookKey("p9", 1), first.Append(nil)) })
	damage("test malformed", func() error { return l.setKey(bookKey("p1", first.Order), []byte{1}) })
	damage("another version", func() error {
		s := bookState{60, uint64(l.book.Size()), l.book.Digest()}
		raw := s.encode()
		raw[0]++
		return l.setKey(keyBook, raw)
	})
	damage("another position", func() error {
		s := bookState{59, uint64(l.book.Size()), l.book.Digest()}
		return l.setKey(keyBook, s.encode())
	})
	rebuilt, err := l.BookAt(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(state, rebuilt.Encode()) {
		t.Error("a rebuild gives another book")
	}
}

// After a failed commit the content of the disk is unknown: nothing more is appended,
// and the events of the commit are not visible.
func TestFailedCommit(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	mustAppend(t, l, at(0, replaytest.Group(t, 1)...))
	state := l.Book().Encode()
	// Badger refuses a value over the size of its log files.
	b := admitTo(t, l, at(3, replaytest.Group(t, 8)...))
	b.takeTxn().Discard()
	b.candidates = append(b.candidates, candidate{in: b.candidates[0].in, seq: 7, value: make([]byte, 65<<20)})
	if appended, err := l.commitAll(b); err == nil || appended.Last != 0 {
		t.Fatalf("commit: %+v, %v", appended, err)
	}
	if seq, _ := l.Last(); seq != 3 || l.Position() != "p2" || !bytes.Equal(state, l.Book().Encode()) {
		t.Errorf("the failed commit shows: event %d, position %q", seq, l.Position())
	}
	if _, err := l.Append(t.Context(), at(3, replaytest.Group(t, 8)...)); err == nil || !errors.Is(err, l.failed) {
		t.Errorf("append after a failed commit: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, dir, Options{})
	mustAppend(t, l, at(3, replaytest.Group(t, 8)...))
	if report := mustVerify(t, l); report.Events != 6 {
		t.Errorf("%d events", report.Events)
	}
}
