package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// ErrCorrupt is the error of a file that is not safetensors or is truncated.
var ErrCorrupt = errors.New("corrupt safetensors file")

// MaxHeaderBytes limits the JSON header, as in the reference implementation.
const MaxHeaderBytes = 100_000_000

// maxDims limits the number of dimensions of a tensor.
const maxDims = 8

// DType is the number format of a stored tensor.
type DType string

// The dtypes this package converts.
const (
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
)

// elementBytes has all dtypes of the format, so that a reader can skip tensors of
// dtypes that this package does not convert.
var elementBytes = map[DType]int64{
	"F64": 8, F32: 4, F16: 2, BF16: 2, "F8_E4M3": 1, "F8_E5M2": 1,
	"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}

// Tensor is one entry of a header.
type Tensor struct {
	Name  string
	DType DType
	Shape []int

	begin, end int64 // byte range in the data
}

// Elements returns the number of elements of the tensor.
func (t Tensor) Elements() int { return product(t.Shape) }

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Header is a parsed header.
type Header struct {
	Tensors   []Tensor // in the order of their data
	Metadata  map[string]string
	DataBytes int64 // size of the data after the header
}

// ParseHeader parses and checks the JSON of a header. Errors wrap ErrCorrupt and
// name the tensor.
func ParseHeader(data []byte) (*Header, error) {
	h := &Header{}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("%w: the header is not a JSON object", ErrCorrupt)
	}
	seen := make(map[string]bool)
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("%w: header: %w", ErrCorrupt, err)
		}
		name := key.(string) // keys are always strings
		if seen[name] {
			return nil, fmt.Errorf("%w: %q occurs twice", ErrCorrupt, name)
		}
		seen[name] = true
		if name == "__metadata__" {
			if err := d.Decode(&h.Metadata); err != nil {
				return nil, fmt.Errorf("%w: metadata: %w", ErrCorrupt, err)
			}
			continue
		}
		var entry headerEntry
		if err := d.Decode(&entry); err != nil {
			return nil, fmt.Errorf("%w: tensor %q: %w", ErrCorrupt, name, err)
		}
		t, err := entry.tensor(name)
		if err != nil {
			return nil, fmt.Errorf("%w: tensor %q: %w", ErrCorrupt, name, err)
		}
		h.Tensors = append(h.Tensors, t)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrCorrupt, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: the header has data after its JSON object", ErrCorrupt)
	}
	return h, h.layOut()
}

type headerEntry struct {
	DType   DType   `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

func (e headerEntry) tensor(name string) (Tensor, error) {
	size, ok := elementBytes[e.DType]
	if !ok {
		return Tensor{}, fmt.Errorf("unknown dtype %q", e.DType)
	}
	if len(e.Shape) > maxDims {
		return Tensor{}, fmt.Errorf("%d dimensions, at most %d", len(e.Shape), maxDims)
	}
	if len(e.Offsets) != 2 || e.Offsets[0] < 0 || e.Offsets[1] < e.Offsets[0] {
		return Tensor{}, fmt.Errorf("bad data_offsets %v", e.Offsets)
	}
	need := size
	for _, d := range e.Shape {
		if d < 0 || d > 0 && need > math.MaxInt64/int64(d) {
			return Tensor{}, fmt.Errorf("bad shape %v", e.Shape)
		}
		need *= int64(d)
	}
	if got := e.Offsets[1] - e.Offsets[0]; got != need {
		return Tensor{}, fmt.Errorf("%d bytes of data, but %s%v takes %d", got, e.DType, e.Shape, need)
	}
	return Tensor{Name: name, DType: e.DType, Shape: e.Shape, begin: e.Offsets[0], end: e.Offsets[1]}, nil
}

// layOut sorts the tensors by their data and checks that they cover it exactly.
func (h *Header) layOut() error {
	slices.SortFunc(h.Tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.Name, b.Name))
	})
	for _, t := range h.Tensors {
		if t.begin != h.DataBytes {
			return fmt.Errorf("%w: tensor %q begins at byte %d of the data, not at %d", ErrCorrupt, t.Name, t.begin, h.DataBytes)
		}
		h.DataBytes = t.end
	}
	return nil
}
