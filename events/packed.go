package events

import (
	"encoding/binary"
	"math"
	"slices"
)

// Int32s is on the wire one msgpack bin of four bytes a value, in planes: the
// lowest byte of every value, then the second of every value, the third, the
// highest. Token ids are small, so one plane is all zeros and another one nearly:
// planes compress better and faster.
type Int32s []int32

// Float32s is on the wire one msgpack bin: little-endian IEEE 754 float32, four
// bytes each. Every bit pattern survives, NaN included. Planes of log-probs do
// not compress better.
type Float32s []float32

// planes returns the four quarters of b.
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

func int32s(c *coder, p *Int32s)     { packed(c, p, Int32s.appendTo, int32sOf) }
func float32s(c *coder, p *Float32s) { packed(c, p, Float32s.appendTo, float32sOf) }
