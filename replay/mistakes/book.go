package mistakes

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"codea1/events"
)

// MaxCount is the highest frequency of a test; counting stops there.
const MaxCount = 1 << 30

// Book holds the tests that answers have failed, each with its frequency.
type Book struct {
	problems map[string]*problem
	size     int
	digest   Digest
}

type problem struct {
	tests map[testKey]test
	last  uint64 // highest order among the tests; 0 while unknown
}

// nextOrder returns the highest order plus one. It depends on the present tests
// and not on a counter, so that a book read back from storage gives the same
// orders as this one.
func (p *problem) nextOrder() uint64 {
	if p.last == 0 {
		for _, t := range p.tests {
			p.last = max(p.last, t.order)
		}
	}
	return p.last + 1
}

// testKey identifies a test within its problem.
type testKey struct{ call, expected string }

type test struct {
	order uint64
	count int
}

// Entry is one test of the book. The tags name the columns of its exports.
type Entry struct {
	ProblemID string `json:"problem" parquet:"problem"`
	Call      string `json:"call" parquet:"call"`         // Python expression
	Expected  string `json:"expected" parquet:"expected"` // the ground truth's value, a Python literal
	Count     int    `json:"count" parquet:"count"`       // frequency, 1 to MaxCount
	// Order ranks the tests of a problem by their time of entry. A test enters
	// with the highest order of its problem plus one; the first has 1.
	Order uint64 `json:"order" parquet:"order"`
}

// Change is the change of one test. Count is its frequency after the change, 0
// if the test left the book. Before is its frequency before the change, 0 if
// the test entered.
type Change struct {
	Entry
	Before int
}

// New returns an empty book.
func New() *Book { return &Book{problems: make(map[string]*problem)} }

// Apply applies a rewarded group (step 7 of the algorithm) and returns the
// changes in order. Deltas apply in their order, decrements first. A test leaves
// at 0 or below; if an answer fails it again later, it enters with a new order.
// A decrement of an absent test does nothing: another group of the same problem
// has removed the test since it was retrieved. Groups of evaluations change
// nothing.
func (b *Book) Apply(r *events.GroupRewarded) []Change {
	if r.Plan.Purpose != events.PurposeTrain || len(r.Deltas) == 0 {
		return nil
	}
	changes := make([]Change, 0, len(r.Deltas))
	for _, d := range r.Deltas {
		e := Entry{ProblemID: r.ProblemID, Order: 1, Call: d.Call, Expected: d.Expected}
		before := 0
		if p := b.problems[e.ProblemID]; p != nil {
			if t, ok := p.tests[testKey{e.Call, e.Expected}]; ok {
				e.Order, before = t.order, t.count
			} else {
				e.Order = p.nextOrder()
			}
		}
		// The delta is clamped first, so that the sum does not overflow.
		e.Count = min(max(before+min(max(d.Change, -MaxCount), MaxCount), 0), MaxCount)
		if e.Count == before {
			continue
		}
		b.set(e, before)
		changes = append(changes, Change{Entry: e, Before: before})
	}
	return changes
}

// Revert undoes changes that Apply returned and the caller could not store. They
// must be the latest changes in effect.
func (b *Book) Revert(changes []Change) {
	for _, c := range slices.Backward(changes) {
		e := c.Entry
		e.Count = c.Before
		b.set(e, c.Count)
	}
}

// set changes the frequency of a test from before to e.Count; 0 means absent.
func (b *Book) set(e Entry, before int) {
	p := b.problems[e.ProblemID]
	if p == nil {
		p = &problem{tests: make(map[testKey]test)}
		b.problems[e.ProblemID] = p
	}
	key := testKey{e.Call, e.Expected}
	if before > 0 {
		old := e
		old.Count = before
		b.digest.remove(&old)
		b.size--
	}
	if e.Count > 0 {
		b.digest.add(&e)
		b.size++
		if len(p.tests) == 0 || p.last != 0 {
			p.last = max(p.last, e.Order)
		}
		p.tests[key] = test{order: e.Order, count: e.Count}
		return
	}
	delete(p.tests, key)
	if len(p.tests) == 0 {
		delete(b.problems, e.ProblemID)
		return
	}
	if e.Order == p.last {
		p.last = 0
	}
}

// Top returns the k most frequent tests of a problem (step 1 of the algorithm).
// Tests of equal frequency are in the order of entry.
func (b *Book) Top(problemID string, k int) []events.HistoricalTest {
	entries := b.Tests(problemID)
	slices.SortStableFunc(entries, func(x, y Entry) int { return cmp.Compare(y.Count, x.Count) })
	entries = entries[:min(max(k, 0), len(entries))]
	top := make([]events.HistoricalTest, len(entries))
	for i, e := range entries {
		top[i] = events.HistoricalTest{Call: e.Call, Expected: e.Expected, Count: e.Count}
	}
	return top
}

// Tests returns the tests of a problem in the order of entry.
func (b *Book) Tests(problemID string) []Entry {
	p := b.problems[problemID]
	if p == nil {
		return nil
	}
	entries := make([]Entry, 0, len(p.tests))
	for key, t := range p.tests {
		entries = append(entries, Entry{problemID, key.call, key.expected, t.count, t.order})
	}
	slices.SortFunc(entries, func(x, y Entry) int { return cmp.Compare(x.Order, y.Order) })
	return entries
}

// Problems returns the IDs of the problems that have tests, sorted.
func (b *Book) Problems() []string { return slices.Sorted(maps.Keys(b.problems)) }

// Size returns the number of tests.
func (b *Book) Size() int { return b.size }

// All yields every test in canonical order: by problem ID, then in the order of
// entry.
func (b *Book) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, id := range b.Problems() {
			for _, e := range b.Tests(id) {
				if !yield(e) {
					return
				}
			}
		}
	}
}
