package mistakes

import (
	"cmp"
	"slices"
)

// Diff returns the changes from one book to another, by problem, then in the
// order of entry. A test that left comes before a test that took its order.
func Diff(from, to *Book) []Change {
	var changes []Change
	for e := range from.All() {
		if to.count(&e) == 0 {
			left := Change{Entry: e, Before: e.Count}
			left.Count = 0
			changes = append(changes, left)
		}
	}
	for e := range to.All() {
		if before := from.count(&e); before != e.Count {
			changes = append(changes, Change{Entry: e, Before: before})
		}
	}
	slices.SortStableFunc(changes, func(x, y Change) int {
		return cmp.Or(cmp.Compare(x.ProblemID, y.ProblemID), cmp.Compare(x.Order, y.Order))
	})
	return changes
}

// count returns the frequency of a test, 0 if it is not in the book.
func (b *Book) count(e *Entry) int {
	if p := b.problems[e.ProblemID]; p != nil {
		return p.tests[testKey{e.Call, e.Expected}].count
	}
	return 0
}
