package safetensors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Values is a tensor to write.
type Values struct {
	Name  string
	Shape []int
	Data  []float32 // row-major
}

// Write writes tensors as dtype F32, which keeps every bit, or as BF16, which
// rounds to nearest even. The same arguments give the same bytes.
func Write(w io.Writer, tensors []Values, dtype DType, metadata map[string]string) error {
	if dtype != F32 && dtype != BF16 {
		return fmt.Errorf("safetensors dtype %s cannot be written, want F32 or BF16", dtype)
	}
	header, err := formatHeader(tensors, dtype, metadata)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(w, 1<<16)
	var scratch [8]byte
	binary.LittleEndian.PutUint64(scratch[:], uint64(len(header)))
	if _, err := buffered.Write(scratch[:]); err != nil {
		return err
	}
	if _, err := buffered.Write(header); err != nil {
		return err
	}
	width := elementBytes[dtype]
	for _, t := range tensors {
		for _, v := range t.Data {
			if dtype == F32 {
				binary.LittleEndian.PutUint32(scratch[:], math.Float32bits(v))
			} else {
				binary.LittleEndian.PutUint16(scratch[:], toBFloat16(v))
			}
			if _, err := buffered.Write(scratch[:width]); err != nil {
				return err
			}
		}
	}
	return buffered.Flush()
}

// formatHeader returns the header with the tensors in their order. It pads the
// header with spaces to align the data to 8 bytes.
func formatHeader(tensors []Values, dtype DType, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	put := func(name string, v any) error {
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		value, err := json.Marshal(v)
		if err != nil {
			return err
		}
		separator := byte(',')
		if b.Len() == 0 {
			separator = '{'
		}
		b.WriteByte(separator)
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
		return nil
	}
	if metadata == nil {
		metadata = map[string]string{"format": "pt"}
	}
	if err := put("__metadata__", metadata); err != nil {
		return nil, err
	}
	var offset int64
	for _, t := range tensors {
		if n := product(t.Shape); n != len(t.Data) {
			return nil, fmt.Errorf("tensor %q: %d floats for shape %v", t.Name, len(t.Data), t.Shape)
		}
		end := offset + elementBytes[dtype]*int64(len(t.Data))
		if err := put(t.Name, headerEntry{dtype, t.Shape, []int64{offset, end}}); err != nil {
			return nil, err
		}
		offset = end
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	return b.Bytes(), nil
}

// toBFloat16 rounds to nearest even. A NaN stays a NaN.
func toBFloat16(v float32) uint16 {
	bits := math.Float32bits(v)
	if v != v {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
