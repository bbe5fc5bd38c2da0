package eventlog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/replay/internal/replaytest"
)

func FuzzDecodeDeltas(f *testing.F) {
	for _, deltas := range [][]events.BookDelta{nil, {replaytest.Delta("f(1)", -3)}, {replaytest.Delta("f(1)", -1), replaytest.Delta("f([])", 1<<40)}} {
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
