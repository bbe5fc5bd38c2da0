package replay

import (
	"testing"

	"codea1/events"
	"github.com/google/go-cmp/cmp"
)

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
