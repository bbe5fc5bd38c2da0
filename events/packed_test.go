package events

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

type packedLists struct {
	I Int32s
	F Float32s
}

func (p *packedLists) fields(c *coder) {
	field(c, "i", &p.I, int32s)
	field(c, "f", &p.F, float32s)
}

// Every bit pattern survives the packed form.
func TestPackedKeepsEveryBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ints := Int32s(rapid.SliceOf(rapid.Int32()).Draw(t, "ints"))
		bits := rapid.SliceOf(rapid.Uint32()).Draw(t, "bits")
		floats := make(Float32s, len(bits))
		for i, b := range bits {
			floats[i] = math.Float32frombits(b)
		}
		raw, err := marshal(&packedLists{ints, floats})
		if err != nil {
			t.Fatal(err)
		}
		var back packedLists
		if err := unmarshal(raw, &back, false); err != nil {
			t.Fatal(err)
		}
		if len(back.I) != len(ints) || len(back.F) != len(floats) {
			t.Fatalf("%d ints and %d floats came back as %d and %d", len(ints), len(floats), len(back.I), len(back.F))
		}
		for i := range ints {
			if back.I[i] != ints[i] {
				t.Fatalf("int %d: %d became %d", i, ints[i], back.I[i])
			}
		}
		for i, b := range bits {
			if math.Float32bits(back.F[i]) != b {
				t.Fatalf("float %d: %#x became %#x", i, b, math.Float32bits(back.F[i]))
			}
		}
	})
}
