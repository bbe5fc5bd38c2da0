package replay

import (
	"bytes"
	"errors"
	"testing"

	"codea1/events"
	"github.com/google/go-cmp/cmp"
)

// A log of format 1 is read as it is, and upgraded by the first writer.
func TestUpgradeFromFormat1(t *testing.T) {
	t.Parallel()
	run, l := storyLog(t, tell(t))
	book := l.Book().Encode()
	var keys [][]byte
	for seq := range uint64(32) {
		keys = append(keys, deltaKey(seq))
	}
	if err := errors.Join(l.deleteKeys(append(keys, keyBook)...), withSingles(l), l.setKey(keyFormat, []byte{1}), l.Close()); err != nil {
		t.Fatal(err)
	}
	reader := openLog(t, Dir(run), Options{ReadOnly: true})
	if reader.format != 1 || !bytes.Equal(book, reader.Book().Encode()) {
		t.Fatalf("format %d, or another book", reader.format)
	}
	mustVerify(t, reader)
	writer := openLog(t, Dir(run), Options{})
	if writer.format != FormatVersion || !bytes.Equal(book, writer.Book().Encode()) {
		t.Fatalf("format %d, or another book", writer.format)
	}
	mustVerify(t, writer)
	rebuilt, err := RebuildBook(t.Context(), writer)
	if err != nil || !bytes.Equal(book, rebuilt.Encode()) {
		t.Fatalf("rebuilt from the deltas: %v, or another book", err)
	}
}

func FuzzDecodeDeltas(f *testing.F) {
	for _, deltas := range [][]events.BookDelta{nil, {delta("f(1)", -3)}, {delta("f(1)", -1), delta("f([])", 1<<40)}} {
		f.Add(encodeDeltas(&events.GroupRewarded{ProblemID: "p1", Deltas: deltas}))
	}
	f.Add([]byte{1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := decodeDeltas(raw)
		if err != nil {
			return
		}
		again, err := decodeDeltas(encodeDeltas(r))
		if diff := cmp.Diff(r, again); diff != "" || err != nil {
			t.Fatalf("%v (-first +again):\n%s", err, diff)
		}
	})
}
