package fork

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

// A rebuilt log has the same events, chain, Mistake Book, position and refusals,
// and accepts and refuses the same next events.
func TestRebuildEqualsSource(t *testing.T) {
	t.Parallel()
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	// A second payload under an ID and its descendants are refused.
	first, second := replaytest.Posed(900, "What is f?"), replaytest.Posed(900, "What is g?")
	replaytest.Encode(t, first)
	losing := replaytest.Encode(t, second)
	eventlogtest.Append(t, l, eventlogtest.At(31, replaytest.Encode(t, first), losing, replaytest.Encode(t, replaytest.Sampled(second, "g"))))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(t.TempDir(), "deep", "r2")
	if _, err := Rebuild(t.Context(), eventlogtest.Open(t, eventlog.Dir(run), eventlog.Options{ReadOnly: true}), eventlog.Dir(into), eventlog.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	source, target := eventlogtest.Open(t, eventlog.Dir(run), eventlog.Options{}), eventlogtest.Open(t, eventlog.Dir(into), eventlog.Options{})
	if report := eventlogtest.Verify(t, target); report.Refused != 1 || report.Events != 32 {
		t.Fatalf("%+v", report)
	}
	last, chain := source.Last()
	if gotLast, gotChain := target.Last(); gotLast != last || gotChain != chain || target.Position() != source.Position() {
		t.Fatalf("ends with event %d at %q, the source with %d at %q", gotLast, target.Position(), last, source.Position())
	}
	if !bytes.Equal(source.Book().Encode(), target.Book().Encode()) {
		t.Fatal("the Mistake Book differs")
	}
	next := replaytest.Encode(t, replaytest.Sampled(second, "g, again"))
	for _, l := range []*eventlog.Log{source, target} {
		appended := eventlogtest.Append(t, l, eventlogtest.At(34, next))
		if len(appended.Conflicts) != 1 {
			t.Fatalf("a descendant of a refused payload is accepted: %+v", appended)
		}
	}
}

func TestRebuildIsAtomic(t *testing.T) {
	t.Parallel()
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	into := filepath.Join(t.TempDir(), "r2")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Rebuild(canceled, l, eventlog.Dir(into), eventlog.Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(into, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := Rebuild(t.Context(), l, run, eventlog.Options{}, nil); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("into a run: %v", err)
	}
	// Rebuild needs the events of the source, but not its index.
	messages := eventlogtest.Messages(t, l, eventlog.ReadOptions{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	id, err := hex.DecodeString(messages[3].ID[:4])
	if err != nil {
		t.Fatal(err)
	}
	bucket := binary.BigEndian.AppendUint16([]byte{'x'}, binary.BigEndian.Uint16(id)>>6)
	none := func([]byte) []byte { return nil }
	eventlogtest.Change(t, eventlog.Dir(run), binary.BigEndian.AppendUint64(bucket, 1), none)
	eventlogtest.Change(t, eventlog.Dir(run), []byte("m/book"), none)
	l = eventlogtest.Open(t, eventlog.Dir(run), eventlog.Options{ReadOnly: true})
	if _, err := Rebuild(t.Context(), l, eventlog.Dir(into), eventlog.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	eventlogtest.Verify(t, eventlogtest.Open(t, eventlog.Dir(into), eventlog.Options{}))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	eventlogtest.Change(t, eventlog.Dir(run), binary.BigEndian.AppendUint64([]byte{'e'}, 5), func(value []byte) []byte {
		value[len(value)-1] ^= 1
		return value
	})
	l = eventlogtest.Open(t, eventlog.Dir(run), eventlog.Options{ReadOnly: true})
	var corrupt *eventlog.CorruptError
	if _, err := Rebuild(t.Context(), l, filepath.Join(t.TempDir(), "log"), eventlog.Options{}, nil); !errors.As(err, &corrupt) {
		t.Errorf("a flipped byte of a payload: %v", err)
	}
	if _, err := os.Stat(eventlog.Dir(into)); err != nil {
		t.Error(err)
	}
}
