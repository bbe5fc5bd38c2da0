package mistakes

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"codea1/events"
)

// MaxCount is the highest frequency a test can reach; counting stops there.
const MaxCount = 1 << 30

// Book holds the tests that answers have failed and not been cured of.
type Book struct {
	problems map[string]*problem
	size     int
	digest   Digest
}

type problem struct {
	tests map[testKey]test
	last  uint64 // highest order among the tests; 0 while unknown
}

// nextOrder is one more than the highest order there is. It follows from the
// tests that are there, not from a counter, so that a book read back from
// storage goes on exactly like this one.
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

// Entry is one test of the book.
type Entry struct {
	ProblemID string
	// Order ranks the tests of a problem by when they entered: a test enters
	// with one more than the highest order there, from 1.
	Order    uint64
	Call     string // Python expression
	Expected string // the ground truth's value, a Python literal
	Count    int    // frequency, 1 to MaxCount
}

// Change is what happened to one test: Count is its frequency afterwards, 0
// when it left the book, and Before its frequency until then, 0 when it
// entered.
type Change struct {
	Entry
	Before int
}

// New returns an empty book.
func New() *Book { return &Book{problems: make(map[string]*problem)} }

// Apply takes in a rewarded group (design step 7) and returns what changed, in
// order. Deltas apply in their order, decrements first. A test at 0 or below
// leaves; when it fails again later it enters anew, behind the others. A
// decrement of a test that is not in the book does nothing: another group of
// the same question has taken it out since it was retrieved. Only groups posed
// for training count.
func (b *Book) Apply(r *events.GroupRewarded) []Change {
	if r.Plan.Purpose != events.PurposeTrain || len(r.Deltas) == 0 {
		return nil
	}
	changes := make([]Change, 0, len(r.Deltas))
	for _, d := range r.Deltas {
		e := Entry{ProblemID: r.ProblemID, Call: d.Call, Expected: d.Expected}
		before := 0
		if p := b.problems[e.ProblemID]; p != nil {
			if t, ok := p.tests[testKey{e.Call, e.Expected}]; ok {
				e.Order, before = t.order, t.count
			} else {
				e.Order = p.nextOrder()
			}
		} else {
			e.Order = 1
		}
		// The delta is clamped first, so that no sum overflows.
		e.Count = min(max(before+min(max(d.Change, -MaxCount), MaxCount), 0), MaxCount)
		if e.Count == before {
			continue
		}
		b.set(e, before)
		changes = append(changes, Change{Entry: e, Before: before})
	}
	return changes
}

// Revert undoes what Apply returned, for a caller that could not store it. It
// must be the latest change that is still in effect.
func (b *Book) Revert(changes []Change) {
	for _, c := range slices.Backward(changes) {
		e := c.Entry
		e.Count = c.Before
		b.set(e, c.Count)
	}
}

// set moves the test of e from frequency before to e.Count, 0 meaning absent.
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

// Top returns the k most frequent tests of a question, ties in the order they
// entered (design step 1).
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

// Tests returns the tests of a question in the order they entered.
func (b *Book) Tests(problemID string) []Entry {
	p := b.problems[problemID]
	if p == nil {
		return nil
	}
	entries := make([]Entry, 0, len(p.tests))
	for key, t := range p.tests {
		entries = append(entries, Entry{problemID, t.order, key.call, key.expected, t.count})
	}
	slices.SortFunc(entries, func(x, y Entry) int { return cmp.Compare(x.Order, y.Order) })
	return entries
}

// Problems returns the IDs of the questions that have tests, sorted.
func (b *Book) Problems() []string { return slices.Sorted(maps.Keys(b.problems)) }

// Size returns the number of tests.
func (b *Book) Size() int { return b.size }

// All yields every test in canonical order: by problem ID, then in the order
// they entered.
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
