package eventlog

import (
	"bytes"
	"testing"

	"codea1/replay/internal/replaytest"
)

// BookAt returns, for every event, the bytes of the book after that event was
// appended.
func TestBookAtEveryPosition(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), Options{})
	live := [][]byte{l.Book().Encode()}
	messages := replaytest.Tell(t)
	for slot := range 12 {
		messages = append(messages, replaytest.Group(t, 900+slot)...)
	}
	for i, m := range messages {
		mustAppend(t, l, at(i, m))
		live = append(live, l.Book().Encode())
	}
	for seq, want := range live {
		book, err := l.BookAt(t.Context(), uint64(seq))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, book.Encode()) {
			t.Fatalf("after event %d the book is not the one that was live", seq)
		}
	}
}
