package events

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
)

// Int32s travels as one msgpack bin of four bytes a value, in planes: the
// lowest byte of every value, then the second of every value, the third, the
// highest. Token ids are small: one plane is all zeros and one almost, which
// compresses better than their digits side by side, and faster.
type Int32s []int32

// Float32s travels as one msgpack bin: little-endian IEEE 754 float32, four
// bytes each. Every bit pattern survives, NaN included. Log-probs have all
// their digits, so planes of them would gain nothing.
type Float32s []float32

var (
	_ msgpack.CustomEncoder = Int32s(nil)
	_ msgpack.CustomDecoder = (*Int32s)(nil)
	_ msgpack.CustomEncoder = Float32s(nil)
	_ msgpack.CustomDecoder = (*Float32s)(nil)
)

// EncodeMsgpack implements msgpack.CustomEncoder.
func (p Int32s) EncodeMsgpack(e *msgpack.Encoder) error {
	return e.EncodeBytes(p.appendTo([]byte{}))
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (p *Int32s) DecodeMsgpack(d *msgpack.Decoder) error {
	b, err := decodeBin(d)
	*p = int32sOf(b)
	return err
}

// EncodeMsgpack implements msgpack.CustomEncoder.
func (p Float32s) EncodeMsgpack(e *msgpack.Encoder) error {
	return e.EncodeBytes(p.appendTo([]byte{}))
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (p *Float32s) DecodeMsgpack(d *msgpack.Decoder) error {
	b, err := decodeBin(d)
	*p = float32sOf(b)
	return err
}

// decodeBin returns the bytes of a bin; none for nil.
func decodeBin(d *msgpack.Decoder) ([]byte, error) {
	b, err := d.DecodeBytes()
	if err == nil && len(b)%4 != 0 {
		return nil, fmt.Errorf("%w: packed values of %d bytes, want a multiple of 4", ErrMalformed, len(b))
	}
	return b, err
}

// planes cuts four times n bytes into four times n bytes.
func planes(b []byte) (lowest, second, third, highest []byte) {
	n := len(b) / 4
	return b[:n], b[n : 2*n], b[2*n : 3*n], b[3*n : 4*n]
}

func (p Int32s) appendTo(b []byte) []byte {
	from := len(b)
	b = slices.Grow(b, 4*len(p))[:from+4*len(p)]
	lowest, second, third, highest := planes(b[from:])
	for i, v := range p {
		lowest[i], second[i], third[i], highest[i] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
	return b
}

func int32sOf(b []byte) Int32s {
	p := make(Int32s, len(b)/4)
	lowest, second, third, highest := planes(b)
	for i := range p {
		p[i] = int32(lowest[i]) | int32(second[i])<<8 | int32(third[i])<<16 | int32(highest[i])<<24
	}
	return p
}

func (p Float32s) appendTo(b []byte) []byte {
	b = slices.Grow(b, 4*len(p))
	for _, v := range p {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func float32sOf(b []byte) Float32s {
	p := make(Float32s, len(b)/4)
	for i := range p {
		p[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return p
}

func (w *writer) ints(p Int32s) {
	if p == nil {
		w.none()
		return
	}
	w.bin(4 * len(p))
	w.b = p.appendTo(w.b)
}

func (w *writer) floats(p Float32s) {
	if p == nil {
		w.none()
		return
	}
	w.bin(4 * len(p))
	w.b = p.appendTo(w.b)
}

func (r *reader) ints() Int32s {
	if b := r.bin(); !r.textsOnly {
		return int32sOf(b)
	}
	return nil
}

func (r *reader) floats() Float32s {
	if b := r.bin(); !r.textsOnly {
		return float32sOf(b)
	}
	return nil
}
