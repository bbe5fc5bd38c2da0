package probes

import (
	"testing"
	"time"

	"codea1/consumers/execution/sandbox"
)

// A call without an end is ended after its last step that counts, also with time left. The
// calls after it are followed.
func TestCallsWithoutAnEnd(t *testing.T) {
	const code = "def f(x):\n    while x:\n        x += 1\n    return x\n"
	traces, err := Traces(t.Context(), open(t), code, "f", []string{"f(1)", "f(0)"}, sandbox.Job{Each: time.Hour, Budget: 2 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if traces[0].Value != nil || traces[1].Value == nil || len(traces[1].Lines) == 0 {
		t.Errorf("%+v", traces)
	}
}
