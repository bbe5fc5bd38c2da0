package dashboard

import (
	"crypto/sha256"
	"encoding/binary"

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
		key := fingerprintOf(problem, d.Call, d.Expected)
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

func fingerprintOf(parts ...string) fingerprint {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		// The lengths make ("ab","c") different from ("a","bc").
		binary.LittleEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return fingerprint(h.Sum(nil)[:16])
}
