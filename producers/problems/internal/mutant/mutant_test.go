package mutant

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/producers/problems/internal/minipy"
)

func TestOf(t *testing.T) {
	tests := []struct {
		params, body string
		want         map[string]Bug // body of each mutant
	}{
		{"xs", "return sum(abs(x) for x in xs if x > 3)", map[string]Bug{
			"return sum(abs(x) for x in xs)":               ForgotFilter,
			"return sum(x for x in xs if x > 3)":           ForgotMap,
			"return sum(abs(x) for x in xs[1:] if x > 3)":  SkippedItem,
			"return sum(abs(x) for x in xs[:-1] if x > 3)": SkippedItem,
			"return sum(abs(x) for x in xs if x >= 3)":     Boundary,
			"return sum(abs(x) for x in xs if x < 3)":      Direction,
			"return sum(abs(x) for x in xs if x > 4)":      Constant,
			"return sum(abs(x) for x in xs if x > 2)":      Constant,
			"return len([abs(x) for x in xs if x > 3])":    Reducer,
		}},
		{"xs", "return max(xs[:2], default=0)", map[string]Bug{
			"return min(xs[:2], default=0)": Reducer,
			"return max(xs[:2])":            EmptyInput,
			"return max(xs[:3], default=0)": SliceBound,
			"return max(xs[:1], default=0)": SliceBound,
		}},
		{"n", "return [x for x in range(1, n + 1) if x % 2 == 0]", map[string]Bug{
			"return [x for x in range(1, n + 1)]":                ForgotFilter,
			"return [x for x in range(1, n) if x % 2 == 0]":      RangeBound,
			"return [x for x in range(2, n + 1) if x % 2 == 0]":  RangeBound,
			"return [x for x in range(0, n + 1) if x % 2 == 0]":  RangeBound,
			"return [x for x in range(1, n + 1) if x % 2 != 0]":  Negation,
			"return [x for x in range(1, n + 1) if x % 2 == 1]":  Negation,
			"return [x for x in range(1, n + 1) if x // 2 == 0]": Operator,
		}},
		{"xs", "for x in xs:\n    if x < 0:\n        return x\nreturn -1", map[string]Bug{
			"for x in xs[1:]:\n    if x < 0:\n        return x\nreturn -1":  SkippedItem,
			"for x in xs[:-1]:\n    if x < 0:\n        return x\nreturn -1": SkippedItem,
			"for x in xs:\n    return x\nreturn -1":                         ForgotBranch,
			"for x in xs:\n    if x <= 0:\n        return x\nreturn -1":     Boundary,
			"for x in xs:\n    if x > 0:\n        return x\nreturn -1":      Direction,
			"for x in xs:\n    if x < 1:\n        return x\nreturn -1":      Constant,
			"for x in xs:\n    if x < 0:\n        return x\nreturn 1":       Sign,
			"for x in xs:\n    if x < 0:\n        return x\nreturn 0":       Constant,
		}},
		{"a, b", "return a if a > 0 and b > 0 else b", map[string]Bug{
			"return b if a > 0 and b > 0 else a":  SwappedBranches,
			"return a":                            ForgotBranch,
			"return b":                            ForgotBranch,
			"return a if a > 0 else b":            ForgotCondition,
			"return a if b > 0 else b":            ForgotCondition,
			"return a if a > 0 or b > 0 else b":   AndOr,
			"return a if a >= 0 and b > 0 else b": Boundary,
			"return a if a < 0 and b > 0 else b":  Direction,
			"return a if a > 1 and b > 0 else b":  Constant,
			"return a if a > 0 and b >= 0 else b": Boundary,
			"return a if a > 0 and b < 0 else b":  Direction,
			"return a if a > 0 and b > 1 else b":  Constant,
		}},
		{"s", "return sorted(c.upper() for c in s[::2] if c in 'aeiouAEIOU')", map[string]Bug{
			"return sorted(c.upper() for c in s[::2])":                                      ForgotFilter,
			"return sorted(c for c in s[::2] if c in 'aeiouAEIOU')":                         ForgotMap,
			"return [c.upper() for c in s[::2] if c in 'aeiouAEIOU']":                       ForgotSort,
			"return sorted((c.upper() for c in s[::2] if c in 'aeiouAEIOU'), reverse=True)": SortOrder,
			"return sorted(c.lower() for c in s[::2] if c in 'aeiouAEIOU')":                 StringMethod,
			"return sorted(c.upper() for c in s[1::2] if c in 'aeiouAEIOU')":                SliceBound,
			"return sorted(c.upper() for c in s if c in 'aeiouAEIOU')":                      ForgotFilter,
			"return sorted(c.upper() for c in s[::2] if c not in 'aeiouAEIOU')":             Negation,
			"return sorted(c.upper() for c in s[::2] if c in 'aeiou')":                      LetterCase,
		}},
	}
	for _, test := range tests {
		source := func(body string) string {
			return "def solve(" + test.params + "):\n    " + strings.ReplaceAll(body, "\n", "\n    ")
		}
		f, err := minipy.Parse(source(test.body))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]Bug{}
		for body, bug := range test.want {
			want[source(body)] = bug
		}
		got := map[string]Bug{}
		for _, m := range Of(f) {
			got[m.Func.Source()] = m.Bug
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("mutants of %s (-want +got):\n%s", test.body, diff)
		}
		if f.Source() != source(test.body) {
			t.Errorf("making mutants changed the program to %s", f.Source())
		}
	}
}
