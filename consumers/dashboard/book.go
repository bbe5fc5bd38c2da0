package dashboard

import (
	"crypto/sha256"
	"fmt"

	"codea1/events"
)

// Book counts the tests of the Mistake Book. It holds only a fingerprint and a
// count of each test, not the test itself.
type Book struct {
	Entered int // tests that entered it; a test that enters again counts again
	Left    int // tests that left it
	counts  map[fingerprint]int64
}

// fingerprint identifies a test. The probability that two of a billion tests
// have the same one is about 10^-21.
type fingerprint [16]byte

func newBook() Book { return Book{counts: map[fingerprint]int64{}} }

// Size returns the tests in the book.
func (b *Book) Size() int { return len(b.counts) }

// apply folds in the changes of a group. A test enters with its first failure
// and leaves when its count falls to 0 or below.
func (b *Book) apply(problem string, deltas []events.BookDelta) (entered, left int) {
	for i := range deltas {
		d := &deltas[i]
		// With quotes, ("ab", "c") and ("a", "bc") differ.
		sum := sha256.Sum256(fmt.Appendf(nil, "%q%q%q", problem, d.Call, d.Expected))
		key := fingerprint(sum[:16])
		before, present := b.counts[key]
		after := before + int64(d.Change)
		switch {
		case after > 0:
			b.counts[key] = after
			if !present {
				entered++
			}
		case present:
			delete(b.counts, key)
			left++
		}
	}
	b.Entered += entered
	b.Left += left
	return entered, left
}
