package sandboxtest

import (
	"os"
	"testing"
	"time"
)

// Thorough reports whether tests repeat for confidence the checks that the default
// run does once: CODEA1_TEST_THOROUGH=1.
var Thorough = os.Getenv("CODEA1_TEST_THOROUGH") == "1"

// CallTimeout is the time limit of tests that wait for it. It is long enough for
// any call that ends on its own: the time for which a busy machine keeps a
// candidate waiting does not count.
var CallTimeout = IfThorough(1500*time.Millisecond, 600*time.Millisecond)

// IfThorough returns the first value in the thorough run, and the second otherwise.
func IfThorough[T any](thorough, quick T) T {
	if Thorough {
		return thorough
	}
	return quick
}

// Every returns n for the thorough run and a multiple of it otherwise: the
// distance between the rows of a data set that a test takes.
func Every(n int) int { return IfThorough(n, 4*n) }

// OnlyThorough skips a test in the default run. why says where the default run tests
// most of it.
func OnlyThorough(t testing.TB, why string) {
	t.Helper()
	if !Thorough {
		t.Skip(why + ": CODEA1_TEST_THOROUGH=1 runs it")
	}
}
