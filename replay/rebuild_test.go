package replay

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"codea1/events"
	"github.com/google/go-cmp/cmp"
)

// A rebuilt log is the log: the same events, chain, book, position and
// refusals, and it goes on in the same way.
func TestRebuildEqualsSource(t *testing.T) {
	t.Parallel()
	run, l := storyLog(t, tell(t))
	// A second payload under an ID, and what follows from it, stay out.
	first, second := posed(900, "What is f?"), posed(900, "What is g?")
	encode(t, first)
	losing := encode(t, second)
	mustAppend(t, l, at(31, encode(t, first), losing, encode(t, sampled(second, "g"))))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(t.TempDir(), "deep", "r2")
	if _, err := execute(t, "replay", "rebuild", run, into); err != nil {
		t.Fatal(err)
	}
	source, target := openLog(t, Dir(run), Options{}), openLog(t, Dir(into), Options{})
	if report := mustVerify(t, target); report.Refused != 1 || report.Events != 32 {
		t.Fatalf("%+v", report)
	}
	if diff := cmp.Diff(source.head, target.head, cmp.AllowUnexported(head{})); diff != "" {
		t.Fatalf("head (-source +target):\n%s", diff)
	}
	if !bytes.Equal(source.Book().Encode(), target.Book().Encode()) {
		t.Fatal("the book is another")
	}
	next := encode(t, sampled(second, "g, again"))
	for _, l := range []*Log{source, target} {
		appended := mustAppend(t, l, at(34, next))
		if len(appended.Conflicts) != 1 {
			t.Fatalf("a refused lineage goes on: %+v", appended)
		}
	}
}

func TestRebuildLeavesNothingHalf(t *testing.T) {
	t.Parallel()
	run, l := storyLog(t, tell(t))
	into := filepath.Join(t.TempDir(), "r2")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Rebuild(canceled, l, Dir(into), Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(into, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := execute(t, "replay", "rebuild", run, run); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("into a run: %v", err)
	}
	// The index of the source is not needed, its events are.
	messages := scanAll(t, l, ScanOptions{})
	if err := errors.Join(l.storeChunk(true), l.deleteKeys(bucketKey(bucketOf(parseID(messages[3].ID)), 1), keyBook)); err != nil {
		t.Fatal(err)
	}
	if _, err := Rebuild(t.Context(), l, Dir(into), Options{}, nil); err != nil {
		t.Fatal(err)
	}
	mustVerify(t, openLog(t, Dir(into), Options{}))
	value := valueOf(t, l, 5)
	value[len(value)-1] ^= 1
	if err := l.setEvent(5, typeCodes[events.TypeCodeExecuted], value); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := Rebuild(t.Context(), l, filepath.Join(t.TempDir(), "log"), Options{}, nil); !errors.As(err, &corrupt) {
		t.Errorf("a flipped byte of a payload: %v", err)
	}
	if _, err := os.Stat(Dir(into)); err != nil {
		t.Error(err)
	}
}
