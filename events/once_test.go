package events_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/eventstest"
)

// EncodeOnce returns the same message again, without allocating.
func TestEncodeOnce(t *testing.T) {
	e := eventstest.CodeSampled(eventstest.Posed("r1", 1, 0))
	want, err := events.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := events.EncodeOnce(e)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-Encode +EncodeOnce):\n%s", d)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = events.EncodeOnce(e) }); n > 0 {
		t.Errorf("encoding once more takes %v allocations", n)
	}
	broken := *eventstest.Posed("r1", 1, 2)
	broken.Run = "a.b"
	if _, err := events.EncodeOnce(&broken); err == nil {
		t.Error("an event that is not valid was encoded")
	}
}
