package events

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
)

// Int32s travels as one msgpack bin: little-endian int32, four bytes each.
type Int32s []int32

// Float32s travels as one msgpack bin: little-endian IEEE 754 float32, four
// bytes each. Every bit pattern survives, NaN included.
type Float32s []float32

var (
	_ msgpack.CustomEncoder = Int32s(nil)
	_ msgpack.CustomDecoder = (*Int32s)(nil)
	_ msgpack.CustomEncoder = Float32s(nil)
	_ msgpack.CustomDecoder = (*Float32s)(nil)
)

// EncodeMsgpack implements msgpack.CustomEncoder.
func (p Int32s) EncodeMsgpack(e *msgpack.Encoder) error {
	return encodeBin(e, 4*len(p), func(b []byte) []byte {
		for _, v := range p {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
		return b
	})
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (p *Int32s) DecodeMsgpack(d *msgpack.Decoder) error {
	return decodeBin(d, func(b []byte) {
		*p = make(Int32s, len(b)/4)
		for i := range *p {
			(*p)[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
		}
	})
}

// EncodeMsgpack implements msgpack.CustomEncoder.
func (p Float32s) EncodeMsgpack(e *msgpack.Encoder) error {
	return encodeBin(e, 4*len(p), func(b []byte) []byte {
		for _, v := range p {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	})
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (p *Float32s) DecodeMsgpack(d *msgpack.Decoder) error {
	return decodeBin(d, func(b []byte) {
		*p = make(Float32s, len(b)/4)
		for i := range *p {
			(*p)[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	})
}

// encodeBin writes a bin of n bytes, which fill appends to what it is given,
// straight into the encoder's buffer.
func encodeBin(e *msgpack.Encoder, n int, fill func([]byte) []byte) error {
	if err := e.EncodeBytesLen(n); err != nil {
		return err
	}
	w := e.Writer()
	if buf, ok := w.(*bytes.Buffer); ok {
		buf.Grow(n)
		buf.Write(fill(buf.AvailableBuffer()))
		return nil
	}
	_, err := w.Write(fill(make([]byte, 0, n)))
	return err
}

// decodeBin lets take have the bytes of a bin; they are gone when it returns.
func decodeBin(d *msgpack.Decoder, take func([]byte)) error {
	n, err := d.DecodeBytesLen()
	if err != nil {
		return err
	}
	n = max(n, 0) // nil
	if n%4 != 0 || n > MaxPayloadBytes {
		return fmt.Errorf("%w: packed values of %d bytes, want a multiple of 4 up to %d", ErrMalformed, n, MaxPayloadBytes)
	}
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)
	*scratch = slices.Grow((*scratch)[:0], n)[:n]
	if err := d.ReadFull(*scratch); err != nil {
		return err
	}
	take(*scratch)
	return nil
}
