package literal

import "testing"

// TestClose has the rule of EvalPlus with values computed by hand: |a-b| is at most
// atol + 1e-7*|b|, and only at the top do types and lengths have to be the same.
func TestClose(t *testing.T) {
	for _, c := range []struct {
		a, b string
		atol float64
		want bool
	}{
		{"0.30000000000000004", "0.3", 0, false},
		{"0.30000000000000004", "0.3", 1e-6, true},
		{"1.0000005", "1.0", 1e-6, true},
		{"1.000002", "1.0", 1e-6, false},
		{"1.0000011", "1.0", 1e-6, true},    // 1.0e-6 + 1e-7
		{"1000.0001", "1000.0", 0, false},   // no tolerance without atol
		{"1000.0001", "1000.0", 1e-6, true}, // 1e-6 + 1e-4
		{"1000.0002", "1000.0", 1e-6, false},
		{"100000001", "100000000.0", 1e-6, false}, // another type
		{"100000001", "100000000", 1e-6, true},    // 1e-6 + 10
		{"1", "1.0", 1e-6, true},                  // equal
		{"[1.0000001, 2]", "[1, 2.0]", 1e-6, true},
		{"(1.0000001,)", "[1.0]", 1e-6, false},
		{"[(1.0000001,)]", "[[1.0]]", 1e-6, true},
		{"[1.0]", "[1.0, 1.0]", 1e-6, false},
		{"[[1.0], [1.0]]", "[1.0, 1.0]", 1e-6, false},
		{"[1.0000001, 'a']", "[1.0, 'a']", 1e-6, false},
		{"{1.0000001}", "{1.0}", 1e-6, false},
		{"'1.0000001'", "'1.0'", 1e-6, false},
		{"complex(1.0000001, 1.0)", "complex(1.0, 1.0000001)", 1e-6, true},
		{"inf", "inf", 1e-6, true},
		{"inf", "-inf", 1e-6, false},
		{"1.0", "inf", 1e-6, false},
		{"nan", "nan", 1e-6, false},
		{"True", "False", 1e-6, false},
	} {
		a, b := parse(t, c.a), parse(t, c.b)
		if got := Close(a, b, c.atol); got != c.want {
			t.Errorf("Close(%s, %s, %v) = %v", c.a, c.b, c.atol, got)
		}
		if got := Close(Pack(a), Pack(b), c.atol); got != c.want {
			t.Errorf("packed: Close(%s, %s, %v) = %v", c.a, c.b, c.atol, got)
		}
	}
}
