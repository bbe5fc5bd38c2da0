package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// eachPath runs f as a subtest on every path of this machine.
func eachPath(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	before := Name()
	t.Cleanup(func() { use(t, before) })
	for _, name := range Names() {
		use(t, name)
		t.Run(name, f)
	}
}

func use(t testing.TB, name string) {
	t.Helper()
	if err := Use(name); err != nil {
		t.Fatal(err)
	}
}

// normals returns n values of a standard normal distribution.
func normals(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// failer is implemented by *testing.T and *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func clone(x []float32) []float32 { return append([]float32(nil), x...) }

// sameBits fails the test at the first element with a different bit. All NaNs count
// as equal.
func sameBits(t failer, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != got[i] && want[i] != want[i] {
			continue
		}
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s[%d] = %v (%#08x), want %v (%#08x)", what, i,
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

// near fails the test at the first element further than tolerance from want,
// relative to 1+|want|.
func near(t failer, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= tolerance*(1+math.Abs(w))) {
			t.Fatalf("%s[%d] = %v, want %v", what, i, got[i], w)
		}
	}
}
