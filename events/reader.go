package events

import (
	"encoding/binary"
	"math"
)

// reader takes msgpack apart. Once something is not as expected it has failed,
// and everything it returns is empty.
type reader struct {
	raw       []byte
	at        int
	failed    bool
	textsOnly bool // token ids and log-probs are stepped over
}

// done reports whether all of it was read, and was as expected.
func (r *reader) done() bool { return !r.failed && r.at == len(r.raw) }

func (r *reader) fail() { r.failed, r.at = true, len(r.raw) }

// take returns the next n bytes; none for want of them.
func (r *reader) take(n int) []byte {
	if n > len(r.raw)-r.at {
		r.fail()
		return nil
	}
	r.at += n
	return r.raw[r.at-n : r.at]
}

// byte returns the next byte; 0xc1, which msgpack does not use, for want of it.
func (r *reader) byte() byte {
	if r.at >= len(r.raw) {
		r.fail()
		return 0xc1
	}
	r.at++
	return r.raw[r.at-1]
}

// number reads a big-endian number of 1, 2, 4 or 8 bytes.
func (r *reader) number(width int) uint64 {
	b := r.take(width)
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// fields begins a map and returns how many fields it has.
func (r *reader) fields() int {
	c := r.byte()
	if c&0xf0 != 0x80 {
		r.fail()
		return 0
	}
	return int(c & 0x0f)
}

// has steps over the name of a field, if that is what comes next, and takes it
// off those that are left.
func (r *reader) has(left *int, name string) bool {
	end := r.at + 1 + len(name)
	if *left == 0 || end > len(r.raw) || r.raw[r.at] != 0xa0|byte(len(name)) || string(r.raw[r.at+1:end]) != name {
		return false
	}
	r.at = end
	*left--
	return true
}

// want is has for a field that is always there.
func (r *reader) want(left *int, name string) {
	if !r.has(left, name) {
		r.fail()
	}
}

// end is the end of a map: none of its fields is left.
func (r *reader) end(left int) {
	if left != 0 {
		r.fail()
	}
}

// list begins a list and returns its length. least is the size of the smallest
// item: what is allocated on the word of a length is in proportion to what is
// there.
func (r *reader) list(least int) int {
	n := 0
	switch c := r.byte(); {
	case c&0xf0 == 0x90:
		n = int(c & 0x0f)
	case c == 0xdc:
		n = int(r.number(2))
	case c == 0xdd:
		n = int(r.number(4))
	default:
		r.fail()
	}
	if n > 2*MaxItems || n > (len(r.raw)-r.at)/least {
		r.fail()
		return 0
	}
	return n
}

// textBytes returns the bytes of a text, as part of raw.
func (r *reader) textBytes() []byte {
	switch c := r.byte(); {
	case c&0xe0 == 0xa0:
		return r.take(int(c & 0x1f))
	case c == 0xd9:
		return r.take(int(r.number(1)))
	case c == 0xda:
		return r.take(int(r.number(2)))
	case c == 0xdb:
		return r.take(int(r.number(4)))
	}
	r.fail()
	return nil
}

func (r *reader) text() string { return string(r.textBytes()) }

// oneOf is text that is one of a few, as a rule.
func oneOf[S ~string](r *reader, few []S) S {
	b := r.textBytes()
	for _, s := range few {
		if string(b) == string(s) {
			return s
		}
	}
	return S(b)
}

func (r *reader) uint() uint64 {
	switch c := r.byte(); {
	case c <= 0x7f:
		return uint64(c)
	case c >= 0xcc && c <= 0xcf:
		return r.number(1 << (c - 0xcc))
	}
	r.fail()
	return 0
}

func (r *reader) int() int {
	if r.at < len(r.raw) && (r.raw[r.at] <= 0x7f || r.raw[r.at]&0xfc == 0xcc) {
		v := r.uint()
		if v > math.MaxInt {
			r.fail()
			return 0
		}
		return int(v)
	}
	switch c := r.byte(); {
	case c >= 0xe0:
		return int(int8(c))
	case c == 0xd0:
		return int(int8(r.number(1)))
	case c == 0xd1:
		return int(int16(r.number(2)))
	case c == 0xd2:
		return int(int32(r.number(4)))
	case c == 0xd3:
		return int(r.number(8))
	}
	r.fail()
	return 0
}

func (r *reader) float() float64 {
	if r.byte() != 0xcb {
		r.fail()
		return 0
	}
	return math.Float64frombits(r.number(8))
}

func (r *reader) bool() bool {
	switch r.byte() {
	case 0xc2:
		return false
	case 0xc3:
		return true
	}
	r.fail()
	return false
}

// bin returns the bytes of a bin of 4-byte values, as part of raw.
func (r *reader) bin() []byte {
	var b []byte
	switch c := r.byte(); c {
	case 0xc4, 0xc5, 0xc6:
		b = r.take(int(r.number(1 << (c - 0xc4))))
	default:
		r.fail()
	}
	if len(b)%4 != 0 {
		r.fail()
		return nil
	}
	return b
}

// A wanted field is its name and its value.

func (r *reader) wantText(left *int, name string) string {
	r.want(left, name)
	return r.text()
}

func (r *reader) wantInt(left *int, name string) int {
	r.want(left, name)
	return r.int()
}

func (r *reader) wantFloat(left *int, name string) float64 {
	r.want(left, name)
	return r.float()
}

func (r *reader) wantBool(left *int, name string) bool {
	r.want(left, name)
	return r.bool()
}

// The optional ones are empty where they are left out.

func (r *reader) optionalText(left *int, name string) string {
	if !r.has(left, name) {
		return ""
	}
	return r.text()
}

func (r *reader) optionalBool(left *int, name string) bool {
	return r.has(left, name) && r.bool()
}

// readWanted reads a list of what read reads, at least least bytes each.
func readWanted[T any](r *reader, left *int, name string, least int, read func(v *T, r *reader)) []T {
	r.want(left, name)
	return readList(r, least, read)
}

func readList[T any](r *reader, least int, read func(v *T, r *reader)) []T {
	all := make([]T, r.list(least))
	for i := range all {
		if read(&all[i], r); r.failed {
			return nil
		}
	}
	return all
}

func readOptional[T any](r *reader, left *int, name string, least int, read func(v *T, r *reader)) []T {
	if !r.has(left, name) {
		return nil
	}
	return readList(r, least, read)
}

func readText(s *string, r *reader) { *s = r.text() }
