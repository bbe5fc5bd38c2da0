package eventlog

import (
	"testing"

	"codea1/events"
	"codea1/replay/internal/replaytest"
)

// indexedLog fills a log with several chunks of events and some more.
func indexedLog(t *testing.T, dir string) (l *Log, messages []events.Message) {
	t.Helper()
	l = openLog(t, dir, scratch)
	for slot := range 40 {
		messages = append(messages, replaytest.Group(t, slot)...)
		mustAppend(t, l, at(3*slot, replaytest.Group(t, slot)...))
	}
	if l.indexed == 0 || l.indexed == l.head.seq {
		t.Fatalf("indexed up to event %d of %d", l.indexed, l.head.seq)
	}
	return l, messages
}

// checkIndex looks up every message of a log, in order, and IDs that it does not have.
func checkIndex(t *testing.T, l *Log, messages []events.Message) {
	t.Helper()
	for i := range messages {
		want := uint64(i + 1)
		if seq, err := l.lookup(parseID(messages[i].ID)); err != nil || seq != want {
			t.Fatalf("event %d is found at %d: %v", want, seq, err)
		}
		if r, err := l.Get(t.Context(), messages[i].ID); err != nil || r.Seq != want || r.Message.ID != messages[i].ID {
			t.Fatalf("event %d: %+v, %v", want, r, err)
		}
		other := parseID(messages[i].ID)
		other[len(other)-1] ^= 1
		if seq, err := l.lookup(other); err != nil || seq != 0 {
			t.Fatalf("%s, which is not there, is found at %d: %v", other, seq, err)
		}
	}
	mustVerify(t, l)
}

// The index finds every event: in a chunk and after the last one, for the writer, for a
// reader at the same time, and after the log is opened again.
func TestIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, messages := indexedLog(t, dir)
	checkIndex(t, l, messages)
	checkIndex(t, openLog(t, dir, Options{ReadOnly: true}), messages)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again := openLog(t, dir, scratch)
	if again.indexed != again.head.seq || len(again.recent.newer) != 0 {
		t.Errorf("closed with %d of %d events indexed", again.indexed, again.head.seq)
	}
	checkIndex(t, again, messages)
	appended := mustAppend(t, again, at(len(messages), messages...))
	if appended.Duplicates != len(messages) {
		t.Errorf("of %d events that were there %d are duplicates", len(messages), appended.Duplicates)
	}
	changed := messages[0]
	changed.Data = replaytest.Encode(t, replaytest.Posed(0, "What else is f?")).Data
	if appended := mustAppend(t, again, at(2*len(messages), changed)); len(appended.Conflicts) != 1 {
		t.Errorf("another payload under an ID: %+v", appended)
	}
}

// The entries of an unfinished chunk do not count, and are overwritten.
func TestHalfAChunk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, messages := indexedLog(t, dir)
	first := l.indexed + 1
	for seq := first; seq <= l.head.seq; seq += 2 {
		id := parseID(messages[seq-1].ID)
		if err := l.setKey(bucketKey(bucketOf(id), first), appendIndexEntry(nil, indexEntry{id, seq})); err != nil {
			t.Fatal(err)
		}
	}
	checkIndex(t, l, messages)
	checkIndex(t, openLog(t, dir, Options{ReadOnly: true}), messages)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	checkIndex(t, openLog(t, dir, scratch), messages)
}

// A batch is looked up in the store as it was before the commit in progress, which may
// write a chunk meanwhile.
func TestChunkBesideAnAdmission(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), scratch)
	messages := replaytest.Group(t, 1)
	mustAppend(t, l, at(0, messages...))
	txn := l.db.NewTransaction(true)
	defer txn.Discard()
	if err := l.storeChunk(true); err != nil {
		t.Fatal(err)
	}
	a := admission{log: l, view: view{l, txn}, before: &tail{}}
	for i := range messages {
		if _, ok, err := a.find(parseID(messages[i].ID)); !ok || err != nil {
			t.Errorf("event %d is found: %v, %v", i+1, ok, err)
		}
	}
}
