package problems

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRandomNumbersAreThoseOfGo(t *testing.T) {
	type draws struct {
		Below    []uint64
		Fraction []float64
	}
	bounds := []uint64{1, 2, 3, 7, 10, 1000, 1 << 40, 1<<63 + 1}
	seeds := [][2]uint64{{0, 0}, {1, 2}, {20261120, 1<<64 - 1}}
	var want, got []draws
	for _, s := range seeds {
		r := rand.New(rand.NewPCG(s[0], s[1]))
		var d draws
		for range 100 {
			for _, n := range bounds {
				d.Below = append(d.Below, r.Uint64N(n))
			}
			d.Fraction = append(d.Fraction, r.Float64())
		}
		want = append(want, d)
	}
	runPython(t, `
from randoms import Random
def draw(r):
    draws = {"below": [], "fraction": []}
    for _ in range(100):
        draws["below"] += [r.below(n) for n in job["bounds"]]
        draws["fraction"].append(r.fraction())
    return draws
answer = [draw(Random(*seeds)) for seeds in job["seeds"]]`, map[string]any{"seeds": seeds, "bounds": bounds}, &got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("draws (-Go +Python):\n%s", diff)
	}
}

func TestMutants(t *testing.T) {
	tests := []struct {
		params, body string
		want         map[string]string // bug by the body of each mutant
	}{
		{"xs", "return sum(abs(x) for x in xs if x > 3)", map[string]string{
			"return sum(abs(x) for x in xs)":               "forgot_filter",
			"return sum(x for x in xs if x > 3)":           "forgot_map",
			"return sum(abs(x) for x in xs[1:] if x > 3)":  "skipped_item",
			"return sum(abs(x) for x in xs[:-1] if x > 3)": "skipped_item",
			"return sum(abs(x) for x in xs if x >= 3)":     "boundary",
			"return sum(abs(x) for x in xs if x < 3)":      "direction",
			"return sum(abs(x) for x in xs if x > 4)":      "constant",
			"return sum(abs(x) for x in xs if x > 2)":      "constant",
			"return len([abs(x) for x in xs if x > 3])":    "reducer",
		}},
		{"xs", "return max(xs[:2], default=0)", map[string]string{
			"return min(xs[:2], default=0)": "reducer",
			"return max(xs[:2])":            "empty_input",
			"return max(xs[:3], default=0)": "slice_bound",
			"return max(xs[:1], default=0)": "slice_bound",
		}},
		{"n", "return [x for x in range(1, n + 1) if x % 2 == 0]", map[string]string{
			"return [x for x in range(1, n + 1)]":                "forgot_filter",
			"return [x for x in range(1, n) if x % 2 == 0]":      "range_bound",
			"return [x for x in range(2, n + 1) if x % 2 == 0]":  "range_bound",
			"return [x for x in range(0, n + 1) if x % 2 == 0]":  "range_bound",
			"return [x for x in range(1, n + 1) if x % 2 != 0]":  "negation",
			"return [x for x in range(1, n + 1) if x % 2 == 1]":  "negation",
			"return [x for x in range(1, n + 1) if x // 2 == 0]": "operator",
		}},
		{"xs", "for x in xs:\n    if x < 0:\n        return x\nreturn -1", map[string]string{
			"for x in xs[1:]:\n    if x < 0:\n        return x\nreturn -1":  "skipped_item",
			"for x in xs[:-1]:\n    if x < 0:\n        return x\nreturn -1": "skipped_item",
			"for x in xs:\n    return x\nreturn -1":                         "forgot_branch",
			"for x in xs:\n    if x <= 0:\n        return x\nreturn -1":     "boundary",
			"for x in xs:\n    if x > 0:\n        return x\nreturn -1":      "direction",
			"for x in xs:\n    if x < 1:\n        return x\nreturn -1":      "constant",
			"for x in xs:\n    if x < 0:\n        return x\nreturn 1":       "sign",
			"for x in xs:\n    if x < 0:\n        return x\nreturn 0":       "constant",
		}},
		{"a, b", "return a if a > 0 and b > 0 else b", map[string]string{
			"return b if a > 0 and b > 0 else a":  "swapped_branches",
			"return a":                            "forgot_branch",
			"return b":                            "forgot_branch",
			"return a if a > 0 else b":            "forgot_condition",
			"return a if b > 0 else b":            "forgot_condition",
			"return a if a > 0 or b > 0 else b":   "and_or",
			"return a if a >= 0 and b > 0 else b": "boundary",
			"return a if a < 0 and b > 0 else b":  "direction",
			"return a if a > 1 and b > 0 else b":  "constant",
			"return a if a > 0 and b >= 0 else b": "boundary",
			"return a if a > 0 and b < 0 else b":  "direction",
			"return a if a > 0 and b > 1 else b":  "constant",
		}},
		{"s", "return sorted(c.upper() for c in s[::2] if c in 'aeiouAEIOU')", map[string]string{
			"return sorted(c.upper() for c in s[::2])":                                      "forgot_filter",
			"return sorted(c for c in s[::2] if c in 'aeiouAEIOU')":                         "forgot_map",
			"return [c.upper() for c in s[::2] if c in 'aeiouAEIOU']":                       "forgot_sort",
			"return sorted((c.upper() for c in s[::2] if c in 'aeiouAEIOU'), reverse=True)": "sort_order",
			"return sorted(c.lower() for c in s[::2] if c in 'aeiouAEIOU')":                 "string_method",
			"return sorted(c.upper() for c in s[1::2] if c in 'aeiouAEIOU')":                "slice_bound",
			"return sorted(c.upper() for c in s if c in 'aeiouAEIOU')":                      "forgot_filter",
			"return sorted(c.upper() for c in s[::2] if c not in 'aeiouAEIOU')":             "negation",
			"return sorted(c.upper() for c in s[::2] if c in 'aeiou')":                      "letter_case",
		}},
	}
	source := func(params, body string) string {
		return "def solve(" + params + "):\n    " + strings.ReplaceAll(body, "\n", "\n    ")
	}
	var sources []string
	for _, test := range tests {
		sources = append(sources, source(test.params, test.body))
	}
	var got []struct {
		Source  string
		Mutants map[string]string
	}
	runPython(t, `
from mutants import mutants_of
from programs import parse
def read(source):
    program = parse(source)
    mutants = {mutant.source(): bug for bug, mutant in mutants_of(program)}
    return {"source": program.source(), "mutants": mutants}
answer = [read(source) for source in job]`, sources, &got)
	for i, test := range tests {
		want := map[string]string{}
		for body, bug := range test.want {
			want[source(test.params, body)] = bug
		}
		if diff := cmp.Diff(want, got[i].Mutants); diff != "" {
			t.Errorf("mutants of %s (-want +got):\n%s", test.body, diff)
		}
		if got[i].Source != sources[i] {
			t.Errorf("the program's source changed to %s", got[i].Source)
		}
	}
}
