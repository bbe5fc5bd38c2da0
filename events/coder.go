package events

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// fielder is a struct of a group's events. Its fields method names each field
// once, for writing and for reading. It is several times faster than reflection
// over the struct tags and gives the same bytes; a test compares the two.
type fielder interface{ fields(c *coder) }

// coder writes or reads msgpack. After an error it does nothing more.
type coder struct {
	err       error
	writing   bool
	textsOnly bool // reading: leave out token ids and log-probs
	frame

	buf bytes.Buffer // the bytes written
	enc *msgpack.Encoder

	raw []byte // the bytes to read
	src bytes.Reader
	dec *msgpack.Decoder

	test shortTest
}

// frame is the state of one map.
type frame struct {
	more     bool // reading: there is a next field
	key, end int  // reading: where its name begins and ends in raw
	left     int  // reading: fields after it
	used     bool // reading: this pass has read a field
	wanted   int  // fields that must be there
	fields   int  // writing: fields written; reading: wanted fields read
}

// coders are reused, because a coder has buffers.
var coders = sync.Pool{New: func() any {
	c := new(coder)
	c.enc, c.dec = msgpack.NewEncoder(&c.buf), msgpack.NewDecoder(&c.src)
	c.enc.SetSortMapKeys(true)
	c.enc.UseCompactInts(true)
	return c
}}

// withMsgpack calls use with v's msgpack bytes, which are valid only during the
// call.
func withMsgpack(v any, use func(raw []byte) error) error {
	c := coders.Get().(*coder)
	defer coders.Put(c)
	c.err, c.writing = nil, true
	c.buf.Reset()
	if f, ok := v.(fielder); ok {
		c.object(f)
	} else {
		c.check(c.enc.Encode(v))
	}
	if c.err != nil {
		return c.err
	}
	return use(c.buf.Bytes())
}

// marshal returns v's msgpack bytes.
func marshal(v any) (raw []byte, err error) {
	err = withMsgpack(v, func(b []byte) error { raw = bytes.Clone(b); return nil })
	return raw, err
}

// unmarshal reads msgpack bytes that CheckShape has accepted into v. v keeps no
// part of raw.
func unmarshal(raw []byte, v any, textsOnly bool) error {
	c := coders.Get().(*coder)
	defer coders.Put(c)
	c.err, c.writing, c.textsOnly, c.raw = nil, false, textsOnly, raw
	c.src.Reset(raw)
	if f, ok := v.(fielder); ok {
		c.object(f)
	} else {
		c.check(c.dec.Decode(v))
	}
	c.raw = nil
	c.src.Reset(nil)
	return c.err
}

func (c *coder) check(err error) {
	if err != nil && c.err == nil {
		c.err = err
	}
}

func (c *coder) fail(format string, args ...any) { c.check(fmt.Errorf(format, args...)) }

// object codes a map. It writes the fields in the order of the fields method and
// reads them in any order: each pass reads the fields that come in that order, or
// skips a field that v does not have.
func (c *coder) object(v fielder) {
	outer := c.frame
	c.frame = frame{}
	if c.writing {
		c.writeObject(v)
	} else {
		c.readObject(v)
	}
	c.frame = outer
}

func (c *coder) writeObject(v fielder) {
	head := c.buf.Len()
	c.check(c.enc.EncodeMapLen(0)) // one byte
	v.fields(c)
	n := c.fields
	if n > 15 { // a head of three bytes
		c.buf.Write([]byte{0, 0})
		b := c.buf.Bytes()[head:]
		copy(b[3:], b[1:])
		b[0] = 0xde
		binary.BigEndian.PutUint16(b[1:], uint16(n))
		return
	}
	c.buf.Bytes()[head] |= byte(n)
}

func (c *coder) readObject(v fielder) {
	n, err := c.dec.DecodeMapLen()
	c.check(err)
	c.left = n
	c.next()
	for {
		c.wanted, c.used = 0, false
		v.fields(c)
		if !c.more || c.err != nil {
			break
		}
		if !c.used { // a field of a later version
			c.check(c.dec.Skip())
			c.next()
		}
	}
	if c.fields < c.wanted {
		c.fail("%d of %d fields are missing", c.wanted-c.fields, c.wanted)
	}
}

// next reads the name of the next field.
func (c *coder) next() {
	if c.more = c.left > 0 && c.err == nil; c.more {
		c.left--
		c.key, c.end = c.span()
	}
}

// begin writes the name of a field, or reports whether the next field has it.
func (c *coder) begin(name string) bool {
	if c.writing {
		c.fields++
		c.check(c.enc.EncodeString(name))
		return true
	}
	return c.more && string(c.raw[c.key:c.end]) == name
}

// done ends a field after begin.
func (c *coder) done() {
	if !c.writing {
		c.used = true
		c.next()
	}
}

// field codes a field that is always there.
func field[T any](c *coder, name string, v *T, code func(*coder, *T)) {
	c.wanted++
	if c.begin(name) {
		code(c, v)
		c.done()
		if !c.writing {
			c.fields++
		}
	}
}

// optional codes a field that is left out when it is empty.
func optional[T comparable](c *coder, name string, v *T, code func(*coder, *T)) {
	var empty T
	there := c.writing && *v != empty
	present(c, name, v, &there, code)
}

// present codes a field that may be left out. It writes the field if there is
// true, and sets there when it reads the field.
func present[T any](c *coder, name string, v *T, there *bool, code func(*coder, *T)) {
	if c.writing && !*there {
		return
	}
	if c.begin(name) {
		*there = true
		code(c, v)
		c.done()
	}
}

// optionalList codes a list that is left out when it is empty.
func optionalList[T any](c *coder, name string, all *[]T, code func(*coder, *[]T)) {
	there := c.writing && len(*all) > 0
	present(c, name, all, &there, code)
}

// optionalObject codes an object that is left out when it is nil.
func optionalObject[T any, P interface {
	*T
	fielder
}](c *coder, name string, v *P) {
	there := c.writing && *v != nil
	present(c, name, v, &there, func(c *coder, v *P) {
		if !c.writing {
			*v = new(T)
		}
		c.object(*v)
	})
}

// list codes a list. A nil list is nil on the wire.
func list[T any](c *coder, all *[]T, item func(*coder, *T)) {
	if !c.writing {
		*all = nil
		if n := c.length(); n >= 0 {
			*all = make([]T, n)
		}
	} else if *all == nil {
		c.check(c.enc.EncodeNil())
	} else {
		c.check(c.enc.EncodeArrayLen(len(*all)))
	}
	for i := range *all {
		if c.err != nil {
			return
		}
		item(c, &(*all)[i])
	}
}

// length reads the length of a list; -1 for nil. Each item takes at least one
// byte, so a length over the remaining bytes is malformed.
func (c *coder) length() int {
	n, err := c.dec.DecodeArrayLen()
	if err == nil && n > c.src.Len() {
		err = fmt.Errorf("a list of %d items, %d bytes left", n, c.src.Len())
	}
	if c.check(err); c.err != nil {
		return -1
	}
	return n
}

// bytes reads a text or a bin as a part of raw.
func (c *coder) bytes() []byte {
	from, to := c.span()
	return c.raw[from:to]
}

// span reads a text or a bin and returns where it begins and ends in raw.
func (c *coder) span() (from, to int) {
	n, err := c.dec.DecodeBytesLen()
	if err == nil && n > c.src.Len() {
		err = io.ErrUnexpectedEOF
	}
	if c.check(err); c.err != nil {
		return 0, 0
	}
	from = len(c.raw) - c.src.Len()
	to = from + max(n, 0)
	_, err = c.src.Seek(int64(to), io.SeekStart)
	c.check(err)
	return from, to
}

func object[T any, P interface {
	*T
	fielder
}](c *coder, v *T) {
	c.object(P(v))
}

func objects[T any, P interface {
	*T
	fielder
}](c *coder, all *[]T) {
	list(c, all, object[T, P])
}

func text(c *coder, v *string) {
	if c.writing {
		c.check(c.enc.EncodeString(*v))
	} else {
		*v = string(c.bytes())
	}
}

func texts(c *coder, all *[]string) { list(c, all, text) }

// word returns a function that codes a text. Reading allocates nothing for a text
// that is one of few.
func word[S ~string](few []S) func(*coder, *S) {
	return func(c *coder, v *S) {
		if c.writing {
			c.check(c.enc.EncodeString(string(*v)))
			return
		}
		b := c.bytes()
		if i := slices.IndexFunc(few, func(s S) bool { return string(b) == string(s) }); i >= 0 {
			*v = few[i]
		} else {
			*v = S(b)
		}
	}
}

func integer(c *coder, v *int) {
	if c.writing {
		c.check(c.enc.EncodeInt(int64(*v)))
		return
	}
	n, err := c.dec.DecodeInt64()
	c.check(err)
	*v = int(n)
}

func unsigned(c *coder, v *uint64) {
	if c.writing {
		c.check(c.enc.EncodeUint(*v))
		return
	}
	n, err := c.dec.DecodeUint64()
	c.check(err)
	*v = n
}

func float(c *coder, v *float64) {
	if c.writing {
		c.check(c.enc.EncodeFloat64(*v))
		return
	}
	f, err := c.dec.DecodeFloat64()
	c.check(err)
	*v = f
}

func boolean(c *coder, v *bool) {
	if c.writing {
		c.check(c.enc.EncodeBool(*v))
		return
	}
	b, err := c.dec.DecodeBool()
	c.check(err)
	*v = b
}

// packed codes a bin of values of four bytes each.
func packed[P ~[]T, T any](c *coder, p *P, appendTo func(P, []byte) []byte, of func([]byte) P) {
	switch {
	case !c.writing:
		b := c.bytes()
		if len(b)%4 != 0 {
			c.fail("packed values of %d bytes, want a multiple of 4", len(b))
		} else if !c.textsOnly {
			*p = of(b)
		}
	case *p == nil:
		c.check(c.enc.EncodeNil())
	default:
		c.check(c.enc.EncodeBytesLen(4 * len(*p)))
		c.buf.Grow(4 * len(*p))
		c.buf.Write(appendTo(*p, c.buf.AvailableBuffer()))
	}
}
