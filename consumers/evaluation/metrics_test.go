package evaluation

import (
	"math"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

func TestPassAtK(t *testing.T) {
	for _, tc := range []struct {
		n, c, k int
		want    float64
	}{
		{8, 0, 1, 0},
		{8, 8, 1, 1},
		{8, 2, 1, 0.25},         // k = 1 is the share
		{5, 2, 2, 0.7},          // 1 - C(3,2)/C(5,2) = 1 - 3/10
		{8, 3, 4, 1 - 5.0/70},   // 1 - C(5,4)/C(8,4)
		{8, 5, 4, 1},            // only three are wrong, so four cannot all be
		{8, 1, 8, 1},            //
		{200, 1, 100, 0.5},      // half of the subsets hold the correct one
		{3, 1, 4, math.NaN()},   //
		{3, 4, 1, math.NaN()},   //
		{3, 1, 0, math.NaN()},   //
		{10, -1, 1, math.NaN()}, //
	} {
		got := PassAtK(tc.n, tc.c, tc.k)
		if math.IsNaN(got) != math.IsNaN(tc.want) || math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("pass@%d of %d/%d: have %v, want %v", tc.k, tc.c, tc.n, got, tc.want)
		}
	}
}

// TestPassAtKCountsSubsets compares the estimate with its definition: the
// share of k-subsets of the n answers that hold a correct one.
func TestPassAtKCountsSubsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		c := rapid.IntRange(0, n).Draw(t, "c")
		k := rapid.IntRange(1, n).Draw(t, "k")
		all, hit := 0, 0
		for set := range uint(1) << n {
			if bits.OnesCount(set) != k {
				continue
			}
			all++
			if set&(1<<c-1) != 0 { // answers 0 to c-1 are the correct ones
				hit++
			}
		}
		if got, want := PassAtK(n, c, k), float64(hit)/float64(all); math.Abs(got-want) > 1e-9 {
			t.Fatalf("pass@%d of %d/%d: have %v, want %v", k, c, n, got, want)
		}
	})
}

func TestIntervalIsDeterministicAndHoldsTheMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1), 2, 50).Draw(t, "values")
		low, high := Interval(values)
		low2, high2 := Interval(values)
		if low != low2 || high != high2 {
			t.Fatalf("[%v, %v], then [%v, %v]", low, high, low2, high2)
		}
		if !(low <= high) || low < 0 || high > 1 {
			t.Fatalf("[%v, %v]", low, high)
		}
	})
}

// TestIntervalWidth compares the interval of many values with that of the normal
// approximation, 1.96 standard errors to each side.
func TestIntervalWidth(t *testing.T) {
	values := make([]float64, 400)
	for i := range values {
		values[i] = float64(i % 2)
	}
	low, high := Interval(values)
	want := 1.96 * 0.5 / math.Sqrt(400) // 0.049
	if math.Abs(0.5-low-want) > 0.006 || math.Abs(high-0.5-want) > 0.006 {
		t.Errorf("have [%v, %v], want 0.5 give or take %.3f", low, high, want)
	}
}

func TestIntervalOfTooFewValues(t *testing.T) {
	for _, values := range [][]float64{nil, {0.5}} {
		if low, high := Interval(values); !math.IsNaN(low) || !math.IsNaN(high) {
			t.Errorf("of %v: [%v, %v]", values, low, high)
		}
	}
}
