package literal

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
)

func TestPack(t *testing.T) {
	for _, text := range []string{
		"None", "'a'", "-7", "[1, 1.0, True, 'a']", "{1: [2], (3,): {4}}", "{1, 2}", "frozenset({1})", "[float('nan')]", "1e+308", "complex(1.0, float('nan'))",
	} {
		v := parse(t, text)
		p := Pack(v)
		if Text(p) != Text(v) || Key(p) != Key(v) || Equal(p, v) != Equal(v, v) || SelfEqual(p) != SelfEqual(v) || p.hashable() != v.hashable() {
			t.Errorf("%s is %s, key %q", text, Text(p), Key(p))
		}
		if !Equal(List{p}, List{v}) && SelfEqual(v) {
			t.Errorf("%s is not equal inside a list", text)
		}
	}
}

// TestKeyOfHugeFloats: a short text has no long key.
func TestKeyOfHugeFloats(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
	}{{"1e308", 24}, {"-1.5e300", 24}, {"0x1" + strings.Repeat("0", 4000), 24}} {
		if key := Key(parse(t, c.text)); len(key) > c.most {
			t.Errorf("the key of %.20s has %d bytes", c.text, len(key))
		}
	}
	for _, same := range [][2]string{{"1e308", "0x" + hexOf(t, "1e308")}, {"1e16", "10000000000000000"}, {"2e300", "0x" + hexOf(t, "2e300")}, {"9223372036854775808", "9223372036854775808.0"}} {
		if !Equal(parse(t, same[0]), parse(t, same[1])) {
			t.Errorf("%s and %.30s differ", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"1e308", "2e308"}, {"9223372036854775808", "-9223372036854775808"}, {"18446744073709551616", "36893488147419103232"}, {"9223372036854775809", "9223372036854775808"}} {
		if Equal(parse(t, other[0]), parse(t, other[1])) {
			t.Errorf("%s and %s are equal", other[0], other[1])
		}
	}
}

// hexOf returns the digits of a whole float.
func hexOf(t *testing.T, text string) string {
	t.Helper()
	whole, _ := new(big.Float).SetFloat64(float64(parse(t, text).(Float))).Int(nil)
	return whole.Text(16)
}

// TestNestedSetsAreSortedOnce: a candidate may send sets within sets within sets;
// comparing and writing them takes no time for each level. The number of bytes that
// parsing allocates says so without a clock.
func TestNestedSetsAreSortedOnce(t *testing.T) {
	var inner strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&inner, "%d, ", i)
	}
	allocations := func(depth int) float64 {
		text := strings.Repeat("frozenset({", depth) + inner.String() + strings.Repeat("})", depth)
		return testing.AllocsPerRun(3, func() { _ = Pack(parse(t, text)) })
	}
	if flat, deep := allocations(1), allocations(28); deep > 2*flat {
		t.Errorf("%v allocations for 1 level, %v for 28", flat, deep)
	}
}
