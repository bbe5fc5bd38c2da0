package state

import (
	"encoding/binary"
	"errors"
	"math"
)

// Version is the version of the encoded form and of the rules that lead to it.
// State of another version is made from the log anew, never converted.
const Version = 1

// ErrMalformed is returned for bytes that are not an encoded State.
var ErrMalformed = errors.New("malformed state")

// encoder writes whole numbers as varints, texts behind their length, and
// measures as their eight bytes.
type encoder struct{ b []byte }

func (e *encoder) numbers(values ...int) {
	for _, v := range values {
		e.b = binary.AppendVarint(e.b, int64(v))
	}
}

func (e *encoder) text(s string) {
	e.numbers(len(s))
	e.b = append(e.b, s...)
}

func (e *encoder) measure(x Measure) {
	e.b = binary.BigEndian.AppendUint64(e.b, math.Float64bits(float64(x)))
}

// decoder reads what an encoder has written, and remembers whether it ran out
// of bytes.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) number() int {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return int(v)
}

func (d *decoder) numbers(into ...*int) {
	for _, n := range into {
		*n = d.number()
	}
}

// count reads how many things follow. Each takes a byte at least, so that no
// number makes it loop for ever.
func (d *decoder) count() int {
	n := d.number()
	if n < 0 || n > len(d.rest) {
		d.failed, d.rest = true, nil
		return 0
	}
	return n
}

func (d *decoder) text() string {
	n := d.count()
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) measure() Measure {
	if len(d.rest) < 8 {
		d.failed, d.rest = true, nil
		return 0
	}
	x := Measure(math.Float64frombits(binary.BigEndian.Uint64(d.rest)))
	d.rest = d.rest[8:]
	return x
}
