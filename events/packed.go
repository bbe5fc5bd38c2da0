package events

import (
	"encoding/binary"
	"fmt"
	"math"

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
	b := make([]byte, 4*len(p))
	for i, v := range p {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	}
	return e.EncodeBytes(b)
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (p *Int32s) DecodeMsgpack(d *msgpack.Decoder) error {
	b, err := decodeBin(d)
	if err != nil {
		return err
	}
	*p = make(Int32s, len(b)/4)
	for i := range *p {
		(*p)[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}

// EncodeMsgpack implements msgpack.CustomEncoder.
func (p Float32s) EncodeMsgpack(e *msgpack.Encoder) error {
	b := make([]byte, 4*len(p))
	for i, v := range p {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
	return e.EncodeBytes(b)
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (p *Float32s) DecodeMsgpack(d *msgpack.Decoder) error {
	b, err := decodeBin(d)
	if err != nil {
		return err
	}
	*p = make(Float32s, len(b)/4)
	for i := range *p {
		(*p)[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}

func decodeBin(d *msgpack.Decoder) ([]byte, error) {
	b, err := d.DecodeBytes()
	if err != nil {
		return nil, err
	}
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("%w: packed values of %d bytes, not a multiple of 4", ErrMalformed, len(b))
	}
	return b, nil
}
