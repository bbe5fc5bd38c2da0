package safetensors

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"

	"codea1/events/files"
)

// Destination returns the slice of Elements() floats that a tensor is read into,
// or nil to skip the tensor. An error stops the read.
type Destination func(t Tensor) ([]float32, error)

// Read reads a file of size bytes from r and returns the header. It calls dest for
// every tensor in the order of the data. Errors name the tensor and wrap
// ErrCorrupt if the file is corrupt.
func Read(r io.Reader, size int64, dest Destination) (*Header, error) {
	h, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(r, 1<<16)
	for _, t := range h.Tensors {
		out, err := dest(t)
		if err != nil {
			return nil, err
		}
		if out == nil {
			_, err = io.CopyN(io.Discard, buffered, t.end-t.begin)
		} else {
			err = readFloats(buffered, t, out)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
	}
	return h, nil
}

func readHeader(r io.Reader, size int64) (*Header, error) {
	var prefix [8]byte
	if size < int64(len(prefix)) {
		return nil, fmt.Errorf("%w: the file has only %d bytes", ErrCorrupt, size)
	}
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > MaxHeaderBytes || n > uint64(size-8) {
		return nil, fmt.Errorf("%w: header of %d bytes in a file of %d", ErrCorrupt, n, size)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	h, err := ParseHeader(text)
	if err != nil {
		return nil, err
	}
	if got := size - 8 - int64(n); got != h.DataBytes {
		return nil, fmt.Errorf("%w: %d bytes of data, but its tensors need %d", ErrCorrupt, got, h.DataBytes)
	}
	return h, nil
}

// readFloats reads one tensor into out as float32.
func readFloats(r io.Reader, t Tensor, out []float32) error {
	if len(out) != t.Elements() {
		return fmt.Errorf("destination has %d floats, want %d", len(out), t.Elements())
	}
	var decode func(b []byte) float32
	switch t.DType {
	case F32:
		decode = func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
	case BF16:
		decode = func(b []byte) float32 { return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16) }
	case F16:
		decode = func(b []byte) float32 { return halfToFloat(binary.LittleEndian.Uint16(b)) }
	default:
		return fmt.Errorf("dtype %s cannot be read as float32", t.DType)
	}
	width := int(elementBytes[t.DType])
	buffer := make([]byte, 1<<15)
	for len(out) > 0 {
		n := min(len(out), len(buffer)/width)
		if _, err := io.ReadFull(r, buffer[:n*width]); err != nil {
			return err
		}
		for i := range n {
			out[i] = decode(buffer[i*width:])
		}
		out = out[n:]
	}
	return nil
}

// halfToFloat converts IEEE 754 binary16 to float32.
func halfToFloat(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, fraction := uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0: // zero or subnormal: fraction * 2^-24
		f := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// ReadFile reads one file of fsys. Errors name the file.
func ReadFile(fsys fs.FS, name string, dest Destination) (*Header, error) {
	f, err := files.OpenFS(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	h, err := Read(f, info.Size(), dest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return h, nil
}
