package mistakes

import "cmp"

// Diff returns how the tests of a book became those of another: Before is the
// frequency in from, Count that in to, 0 where the test is not there. Tests
// come by problem, then in the order in which they entered.
func Diff(from, to *Book) []Change {
	var changes []Change
	for e := range to.All() {
		if before := from.count(&e); before != e.Count {
			changes = append(changes, Change{Entry: e, Before: before})
		}
	}
	kept := len(changes)
	for e := range from.All() {
		if to.count(&e) == 0 {
			left := Change{Entry: e, Before: e.Count}
			left.Count = 0
			changes = append(changes, left)
		}
	}
	return merge(changes[:kept], changes[kept:])
}

// merge joins two lists in canonical order; a test that left goes before one
// that entered in its place.
func merge(stayed, left []Change) []Change {
	merged := make([]Change, 0, len(stayed)+len(left))
	for len(stayed) > 0 && len(left) > 0 {
		x, y := &left[0], &stayed[0]
		if cmp.Or(cmp.Compare(x.ProblemID, y.ProblemID), cmp.Compare(x.Order, y.Order)) <= 0 {
			merged, left = append(merged, *x), left[1:]
		} else {
			merged, stayed = append(merged, *y), stayed[1:]
		}
	}
	return append(append(merged, left...), stayed...)
}

// count returns the frequency of a test, 0 if it is not in the book.
func (b *Book) count(e *Entry) int {
	if p := b.problems[e.ProblemID]; p != nil {
		return p.tests[testKey{e.Call, e.Expected}].count
	}
	return 0
}
