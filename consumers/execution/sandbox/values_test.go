package sandbox

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"codea1/consumers/execution/literal"
)

// TestValuesAgreeWithPython sends values through a child and back, and asks it
// which pairs are equal.
func TestValuesAgreeWithPython(t *testing.T) {
	p := openPool(t, Config{Workers: 1})
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.SliceOfN(values(3), 1, 12).Draw(t, "values")
		var calls []string
		for i, v := range drawn {
			calls = append(calls, literal.Text(v), literal.Text(v)+" == "+literal.Text(drawn[(i+1)%len(drawn)]))
		}
		report, err := p.Run(t.Context(), Program{}, calls)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range drawn {
			back, equal := report.Outcomes[2*i], report.Outcomes[2*i+1]
			if back.Value == nil || literal.Text(back.Value) != literal.Text(v) {
				t.Fatalf("%s came back as %+v", literal.Text(v), back)
			}
			next := drawn[(i+1)%len(drawn)]
			if want := literal.Bool(literal.Equal(v, next)); equal.Value != want {
				t.Fatalf("%s == %s: Python says %+v, Equal %v", literal.Text(v), literal.Text(next), equal, want)
			}
		}
	})
}

// values draws literals. Few distinct leaves, so that equal ones meet.
func values(depth int) *rapid.Generator[literal.Value] {
	leaf := rapid.OneOf(
		rapid.Just[literal.Value](literal.None{}),
		rapid.Map(rapid.Bool(), func(b bool) literal.Value { return literal.Bool(b) }),
		rapid.Map(rapid.Int64Range(-2, 2), func(n int64) literal.Value { return literal.NewInt(n) }),
		rapid.Map(rapid.Uint64(), func(n uint64) literal.Value {
			return literal.BigInt(new(big.Int).Exp(new(big.Int).SetUint64(n), big.NewInt(3), nil))
		}),
		rapid.Map(rapid.SampledFrom([]float64{0, 1, -1, 0.5, 1e16, 1e300, 1e-7, math.Inf(1), math.Inf(-1), math.NaN()}), func(f float64) literal.Value { return literal.Float(f) }),
		rapid.Map(rapid.Float64(), func(f float64) literal.Value { return literal.Float(f) }),
		rapid.Map(rapid.SampledFrom([]complex128{0, 1, 2i, -1 + 0.5i, complex(math.Inf(1), -1)}), func(c complex128) literal.Value { return literal.Complex(c) }),
		rapid.Map(rapid.String(), func(s string) literal.Value { return literal.Str(s) }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) literal.Value { return literal.Bytes(b) }),
	)
	if depth == 0 {
		return leaf
	}
	items := rapid.SliceOfN(values(depth-1), 0, 3)
	return rapid.OneOf(
		leaf,
		rapid.Map(items, func(l []literal.Value) literal.Value { return literal.List(l) }),
		rapid.Map(items, func(l []literal.Value) literal.Value { return literal.Tuple(l) }),
		rapid.Map(rapid.SliceOfNDistinct(leaf, 0, 3, literal.Key), func(l []literal.Value) literal.Value { return literal.Set(l) }),
		rapid.Map(rapid.SliceOfNDistinct(leaf, 0, 3, literal.Key), func(l []literal.Value) literal.Value { return literal.FrozenSet(l) }),
		rapid.Map(rapid.SliceOfNDistinct(leaf, 0, 3, literal.Key), func(keys []literal.Value) literal.Value {
			var d literal.Dict
			for i, key := range keys {
				d = append(d, literal.Entry{Key: key, Value: keys[len(keys)-1-i]})
			}
			return d
		}),
	)
}
