package mistakes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Diff returns every test with another frequency once, and no other test.
func TestDiffIsTheDifference(t *testing.T) {
	type name struct{ problem, call, expected string }
	counts := func(b *Book) map[name]int {
		m := make(map[name]int)
		for e := range b.All() {
			m[name{e.ProblemID, e.Call, e.Expected}] = e.Count
		}
		return m
	}
	rapid.Check(t, func(t *rapid.T) {
		from, to := New(), New()
		for _, r := range rapid.SliceOfN(rapid.Custom(drawRewarded), 0, 10).Draw(t, "before") {
			from.Apply(r)
			to.Apply(r)
		}
		for _, r := range rapid.SliceOfN(rapid.Custom(drawRewarded), 0, 10).Draw(t, "between") {
			to.Apply(r)
		}
		have := counts(from)
		seen := make(map[name]bool)
		for _, c := range Diff(from, to) {
			n := name{c.ProblemID, c.Call, c.Expected}
			if seen[n] || c.Before == c.Count || have[n] != c.Before {
				t.Fatalf("%v: was %d", c, have[n])
			}
			seen[n] = true
			if have[n] = c.Count; c.Count == 0 {
				delete(have, n)
			}
		}
		if diff := cmp.Diff(counts(to), have); diff != "" {
			t.Fatalf("from and difference (-to +have):\n%s", diff)
		}
	})
}
