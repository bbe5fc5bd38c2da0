package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"codea1/events"
	"codea1/replay/internal/replaytest"
	"codea1/replay/state"
)

// lives returns the events of a random run: interleaved groups of two steps and of an
// evaluation that end in every possible way or not at all, and versions at random times.
func lives(t testing.TB, rt *rapid.T) []events.Message {
	var ways [][]events.Message
	tell := func(tell func(s *replaytest.Story)) {
		s := replaytest.NewStory(t)
		if tell(s); len(s.Messages) > 0 {
			ways = append(ways, s.Messages)
		}
	}
	tell(func(s *replaytest.Story) { s.Start() })
	for step := range 3 {
		for slot := range rapid.IntRange(0, 2).Draw(rt, "groups") {
			tell(func(s *replaytest.Story) {
				plan := s.Plan(events.PurposeTrain, step, slot)
				if step == 0 {
					plan = s.Plan(events.PurposeEval, 0, 0)
					plan.Tag = fmt.Sprintf("tag%d", slot)
				}
				s.Group(plan)
			})
			way := &ways[len(ways)-1]
			switch rapid.IntRange(0, 3).Draw(rt, "end") {
			case 0:
				*way = (*way)[:rapid.IntRange(1, 4).Draw(rt, "length")]
			case 1:
				tell(func(s *replaytest.Story) {
					s.Root((*way)[0].Group, &events.GroupDropped{Purpose: events.PurposeTrain, Step: max(step, 1), Slot: slot, Groups: 2, Stage: "test", Reason: events.DropRetries})
				})
			}
		}
	}
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		tell(func(s *replaytest.Story) {
			for step := range rapid.IntRange(0, 2).Draw(rt, "versions") {
				s.Update(role, step+1, []string{"s000001-q0000"})
			}
		})
	}
	tell(func(s *replaytest.Story) { s.Finish() })
	var merged []events.Message
	for len(ways) > 0 {
		i := rapid.IntRange(0, len(ways)-1).Draw(rt, "next")
		merged = append(merged, ways[i][0])
		if ways[i] = ways[i][1:]; len(ways[i]) == 0 {
			ways = append(ways[:i], ways[i+1:]...)
		}
	}
	return merged
}

// At every position three states are the same, byte for byte: the one that followed the
// log, the one computed from the log alone, and the one from a snapshot and the events
// after it. So are the Mistake Books.
func TestStateAtEveryPosition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir := filepath.Join(scratchDir(t), "log") // a reader's snapshot lies beside it
		l, err := Open(dir, scratch)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		live, books := [][]byte{l.state.Encode()}, [][]byte{l.book.Encode()}
		for i, m := range lives(t, rt) {
			mustAppend(t, l, recorded(i, m)) // an attempt may end before it begins
			live, books = append(live, l.state.Encode()), append(books, l.book.Encode())
			switch rapid.IntRange(0, 30).Draw(rt, "meanwhile") {
			case 0: // closed
				if err := l.Close(); err != nil {
					rt.Fatal(err)
				}
				if l, err = Open(dir, scratch); err != nil {
					rt.Fatal(err)
				}
			case 1, 2: // stored, before further events
				if err := l.storeState(true); err != nil {
					rt.Fatal(err)
				}
			case 3: // compacted
				if _, err := l.Compact(t.Context(), uint64(i), nil); err != nil {
					rt.Fatal(err)
				}
			}
		}
		check := func(what string, l *Log) {
			for seq := range live {
				s, err := l.StateAt(t.Context(), uint64(seq))
				if err != nil {
					rt.Fatal(err)
				}
				book, err := l.BookAt(t.Context(), uint64(seq))
				if err != nil {
					rt.Fatal(err)
				}
				if !bytes.Equal(live[seq], s.Encode()) || !bytes.Equal(books[seq], book.Encode()) {
					rt.Fatalf("%s: after event %d the state is not the one that was live", what, seq)
				}
			}
		}
		check("snapshot and tail", l)
		if _, err := l.Verify(t.Context(), nil); err != nil {
			rt.Fatal(err)
		}
		if err := l.deleteKeys(keyState); err != nil {
			rt.Fatal(err)
		}
		check("log alone", l)
	})
}

// A stored state that does not match the log is replaced.
func TestStateComesFromTheLogAlone(t *testing.T) {
	t.Parallel()
	run, l := storyLog(t, replaytest.Tell(t))
	want := l.state.Encode()
	other := state.New()
	other.Apply(&state.Event{Seq: 1, Type: events.TypeProblemPosed, Group: "s000001-q0000"})
	chain := func(seq uint64) Hash {
		if seq == 0 {
			return Hash{}
		}
		r, _ := readAt(t, l, seq)
		return r.Chain
	}
	for name, value := range map[string]func() []byte{
		"absent":               func() []byte { return nil },
		"cut":                  func() []byte { return encodeState(l.state, 31, chain(31))[:50] },
		"of another version":   func() []byte { b := encodeState(l.state, 31, chain(31)); b[0]++; return b },
		"of another log":       func() []byte { return encodeState(other, 31, Hash{1}) },
		"behind the end":       func() []byte { return encodeState(other, 32, chain(31)) },
		"changed":              func() []byte { b := encodeState(l.state, 31, chain(31)); b[len(b)-1] ^= 1; return b },
		"of a version in body": func() []byte { b := encodeState(l.state, 31, chain(31)); b[73]++; return b },
	} {
		if err := l.setKey(keyState, value()); err != nil {
			t.Fatal(err)
		}
		l.failed = errors.New("test: closes without storing")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		reader := openLog(t, Dir(run), Options{ReadOnly: true})
		s, err := reader.StateAt(t.Context(), 31)
		if err != nil || !bytes.Equal(want, s.Encode()) {
			t.Errorf("%s: read with %v, or another state", name, err)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		l = openLog(t, Dir(run), Options{})
		if !bytes.Equal(want, l.state.Encode()) {
			t.Errorf("%s: another state", name)
		}
	}
	// Verify finds a wrong state with correct checksums.
	if err := l.setKey(keyState, encodeState(other, 30, chain(30))); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := l.Verify(t.Context(), nil); !errors.As(err, &corrupt) || corrupt.Seq != 30 {
		t.Errorf("verify: %v", err)
	}
}

// The state is stored regularly, not only when the log closes.
func TestStateIsStored(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), Options{})
	batch := make([]Incoming, 0, snapshotEvery/8)
	for slot := range snapshotEvery + 10 {
		batch = append(batch, at(slot, replaytest.Encode(t, replaytest.Posed(slot, "What is f?")))...)
		if len(batch) == cap(batch) {
			mustAppend(t, l, batch)
			batch = batch[:0]
		}
	}
	if l.stored != snapshotEvery {
		t.Errorf("the state is stored at event %d", l.stored)
	}
}

// A state over the limit of a value does not end the run: it is folded from the last stored
// state or from the start.
func TestStateTooLargeToStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(scratchDir(t), "log")
	l, err := Open(dir, scratch)
	if err != nil {
		t.Fatal(err)
	}
	messages := replaytest.Tell(t)[:30] // without the end, which says that it is another one
	mustAppend(t, l, at(0, messages[:20]...))
	l.state.Cursor.Finished = strings.Repeat("x", maxStateBytes)
	l.committing.Lock()
	err = l.storeState(true)
	l.committing.Unlock()
	if err != nil {
		t.Fatalf("store: %v", err)
	}
	mustAppend(t, l, at(20, messages[20:]...))
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	l = openLog(t, dir, scratch)
	_, whole := storyLog(t, messages)
	if !bytes.Equal(whole.state.Encode(), l.state.Encode()) {
		t.Error("another state is folded")
	}
	mustVerify(t, l)
}
