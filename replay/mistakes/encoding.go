package mistakes

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Version is the version of the encoded form and of the rules that lead to it.
// State of another version is rebuilt from the log, never converted.
const Version = 1

// maxOrder leaves room to count on from any order that is read.
const maxOrder = 1 << 62

// ErrMalformed is returned for bytes that are not an encoded book or entry.
var ErrMalformed = errors.New("malformed mistake book")

// Append adds the encoded entry to b: order and count as unsigned varints,
// then problem ID, call and expected value, each behind its length in bytes
// as an unsigned varint.
func (e *Entry) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, e.Order)
	b = binary.AppendUvarint(b, uint64(e.Count))
	for _, s := range [...]string{e.ProblemID, e.Call, e.Expected} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// DecodeEntry reads one entry and returns what follows it.
func DecodeEntry(b []byte) (Entry, []byte, error) {
	d := decoder{rest: b}
	e := Entry{Order: d.number(), Count: int(min(d.number(), MaxCount+1))}
	e.ProblemID, e.Call, e.Expected = d.text(), d.text(), d.text()
	if d.failed || e.Order == 0 || e.Order > maxOrder || e.Count == 0 || e.Count > MaxCount {
		return Entry{}, nil, fmt.Errorf("%w: entry of %d bytes", ErrMalformed, len(b))
	}
	return e, d.rest, nil
}

// Add puts back a test that was stored, whatever the order they come in. It
// refuses a test that is there already.
func (b *Book) Add(e Entry) error {
	if p := b.problems[e.ProblemID]; p != nil {
		if _, ok := p.tests[testKey{e.Call, e.Expected}]; ok {
			return fmt.Errorf("%w: problem %q holds %s twice", ErrMalformed, e.ProblemID, e.Call)
		}
	}
	b.set(e, 0)
	return nil
}

// Encode returns the whole book, tests in canonical order: Version as one
// byte, the number of tests as an unsigned varint, then every entry. Equal
// books have equal bytes.
func (b *Book) Encode() []byte {
	out := binary.AppendUvarint([]byte{Version}, uint64(b.size))
	for e := range b.All() {
		out = e.Append(out)
	}
	return out
}

// Decode is the inverse of Encode. It accepts canonical bytes only.
func Decode(raw []byte) (*Book, error) {
	if len(raw) == 0 || raw[0] != Version {
		return nil, fmt.Errorf("%w: not version %d", ErrMalformed, Version)
	}
	d := decoder{rest: raw[1:]}
	count := d.number()
	b := New()
	var previous Entry
	rest := d.rest
	for i := uint64(0); i < count && !d.failed; i++ {
		e, after, err := DecodeEntry(rest)
		if err != nil {
			return nil, fmt.Errorf("test %d: %w", i, err)
		}
		if i > 0 && (e.ProblemID < previous.ProblemID || e.ProblemID == previous.ProblemID && e.Order <= previous.Order) {
			return nil, fmt.Errorf("%w: test %d is out of order", ErrMalformed, i)
		}
		if err := b.Add(e); err != nil {
			return nil, err
		}
		previous, rest = e, after
	}
	if d.failed || len(rest) > 0 {
		return nil, fmt.Errorf("%w: %d tests, %d bytes left over", ErrMalformed, count, len(rest))
	}
	return b, nil
}

// decoder reads varints and texts and remembers the first failure.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	// Only the shortest form is canonical: no last group of zero bits.
	if n <= 0 || n > 1 && d.rest[n-1] == 0 {
		d.failed = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) text() string {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.failed = true
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

// Digest is the sum, modulo 2^256, of the SHA-256 of every encoded entry, four
// little-endian words. It costs what changed, not what is there. It finds
// damage and divergence; it does not withstand someone who picks the entries.
type Digest [4]uint64

func (d *Digest) add(e *Entry) {
	var carry uint64
	for i, w := range entryHash(e) {
		d[i], carry = bits.Add64(d[i], w, carry)
	}
}

func (d *Digest) remove(e *Entry) {
	var borrow uint64
	for i, w := range entryHash(e) {
		d[i], borrow = bits.Sub64(d[i], w, borrow)
	}
}

// Bytes returns the digest as 32 bytes, little-endian.
func (d Digest) Bytes() []byte {
	b := make([]byte, 0, sha256.Size)
	for _, w := range d {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func entryHash(e *Entry) (words [4]uint64) {
	sum := sha256.Sum256(e.Append(make([]byte, 0, 256)))
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(sum[8*i:])
	}
	return words
}

// Digest returns the digest of the book's present state.
func (b *Book) Digest() Digest { return b.digest }
