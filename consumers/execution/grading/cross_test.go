package grading

import (
	"testing"
	"time"

	"codea1/consumers/execution"
	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
)

// TestCross: a test counts as often as it was written, and answers behave alike if every
// test ends in the same way for them.
func TestCross(t *testing.T) {
	pool, err := sandbox.Open(t.Context(), sandbox.Config{Level: sandbox.LevelOpen, Workers: 2, CallTimeout: sandboxtest.CallTimeout, JobTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	codes := []string{"def f(x): return x + 1", "def f(x): return 1 + x", "def f(x): return 2", "f = 1", "def f(x): return 1 / 0"}
	got, err := Cross(t.Context(), execution.New(pool), pool.Config().Workers, "f", codes, []string{"assert f(1) == 2", "assert f(2) == 3", "assert f(1) == 2", "assert f(5) == 2"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{3, 3, 3, 0, 0} {
		if got[i].Passed != want {
			t.Errorf("%s passes %d tests, want %d", codes[i], got[i].Passed, want)
		}
	}
	if got[0].Behaviour != got[1].Behaviour || got[0].Behaviour == got[2].Behaviour || got[3].Behaviour == got[4].Behaviour {
		t.Errorf("%+v", got)
	}
	if none, err := Cross(t.Context(), execution.New(pool), 1, "f", codes, nil); err != nil || none[0].Passed != 0 || none[0].Behaviour != none[1].Behaviour {
		t.Errorf("without tests: %+v, %v", none, err)
	}
}
