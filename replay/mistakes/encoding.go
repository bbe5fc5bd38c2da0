package mistakes

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Version is the version of the encoding and of the rules of Apply. A book of
// another version is rebuilt from the log, never converted.
const Version = 1

// maxOrder is below the largest uint64, so that nextOrder does not overflow.
const maxOrder = 1 << 62

// ErrMalformed is returned for bytes that are not an encoded entry, and for an
// entry that a book has already.
var ErrMalformed = errors.New("malformed mistake book")

// Append appends the encoded entry to b: order and count as unsigned varints,
// then problem ID, call and expected value, each after its length in bytes as an
// unsigned varint.
func (e *Entry) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, e.Order)
	b = binary.AppendUvarint(b, uint64(e.Count))
	for _, s := range [...]string{e.ProblemID, e.Call, e.Expected} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// DecodeEntry decodes one entry and returns the bytes after it.
func DecodeEntry(b []byte) (Entry, []byte, error) {
	d := decoder{rest: b}
	e := Entry{Order: d.number(), Count: int(min(d.number(), MaxCount+1))}
	e.ProblemID, e.Call, e.Expected = d.text(), d.text(), d.text()
	if d.failed || e.Order == 0 || e.Order > maxOrder || e.Count == 0 || e.Count > MaxCount {
		return Entry{}, nil, fmt.Errorf("%w: entry of %d bytes", ErrMalformed, len(b))
	}
	return e, d.rest, nil
}

// Add adds a test from storage. Tests may be added in any order. Add returns
// ErrMalformed for a test that the book has already.
func (b *Book) Add(e Entry) error {
	if p := b.problems[e.ProblemID]; p != nil {
		if _, ok := p.tests[testKey{e.Call, e.Expected}]; ok {
			return fmt.Errorf("%w: problem %q holds %s twice", ErrMalformed, e.ProblemID, e.Call)
		}
	}
	b.set(e, 0)
	return nil
}

// Encode returns Version as one byte, the number of tests as an unsigned varint,
// then every entry in canonical order. Equal books have equal bytes.
func (b *Book) Encode() []byte {
	out := binary.AppendUvarint([]byte{Version}, uint64(b.size))
	for e := range b.All() {
		out = e.Append(out)
	}
	return out
}

// decoder reads varints and texts. failed stays true after the first failure.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	// Only the shortest form is canonical: its last byte is not 0.
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

// Digest is the sum, modulo 2^256, of the SHA-256 of every encoded entry, as four
// little-endian words. The cost of an update depends on the changes and not on
// the size of the book. It finds damage and divergence; it does not resist
// entries chosen by an attacker.
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

// Digest returns the digest of the book's tests.
func (b *Book) Digest() Digest { return b.digest }
