package benchmark

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pools.Main(m)) }

var pools = sandboxtest.Pools[int, *sandbox.Pool]{Skip: sandbox.ErrNotIsolated}

// The branches of a program with four of them were counted by hand: f(1) takes one, f(-1)
// two others, and f(0) the second and the fourth.
func TestCoverage(t *testing.T) {
	config := sandbox.Config{CallTimeout: time.Minute, JobTimeout: 2 * time.Minute, MemoryBytes: 1 << 30}
	pool := pools.Get(t, 0, func() (*sandbox.Pool, error) { return sandbox.Open(t.Context(), config) })
	const truth = "def f(x):\n    if x > 0:\n        return 1\n    elif x:\n        return 2\n    return 3\n"
	test := func(call string, status events.TestStatus, wrong bool) events.ExecutedTest {
		return events.ExecutedTest{Call: call, Status: status, Wrong: wrong}
	}
	kept := events.StatusKept
	for _, c := range []struct {
		code            string
		tests           []events.ExecutedTest
		branches, taken int
	}{
		{truth, nil, 4, 0},
		{truth, []events.ExecutedTest{test("f(1)", kept, false), test("f(2)", kept, false)}, 4, 1},
		{truth, []events.ExecutedTest{test("f(1)", kept, false), test("f(-1)", kept, false)}, 4, 3},
		{truth, []events.ExecutedTest{test("f(1)", kept, false), test("f(-1)", kept, true)}, 4, 1},
		{truth, []events.ExecutedTest{test("f(1)", kept, false), test("f()", events.StatusRaised, false), test("f(-1)", kept, false)}, 4, 1}, // only two count
		{"def f(x): return x\n", []events.ExecutedTest{test("f(1)", kept, false)}, 0, 0},
		{"def f(", nil, 0, 0},
	} {
		branches, taken, err := coverage(t.Context(), pool, c.code, &events.ExecutedSuite{Tests: c.tests}, 2)
		if err != nil || branches != c.branches || taken != c.taken {
			t.Errorf("%q, %v: %d of %d branches, %v; want %d of %d", c.code, c.tests, taken, branches, err, c.taken, c.branches)
		}
	}
}
