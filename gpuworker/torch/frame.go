package torch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"codea1/events"
)

const (
	protocolVersion = 3
	lengthBytes     = 4
)

// maxFrameBytes bounds a frame. A longer one is refused by its length, before it is
// read.
const maxFrameBytes = 512 << 20

// writeFrame writes a value as a frame.
func writeFrame(w io.Writer, v any) error {
	body, err := msgpack.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxFrameBytes {
		return fmt.Errorf("%w: a frame of %d bytes is over the limit of %d; make the batch smaller", ErrBadRequest, len(body), maxFrameBytes)
	}
	_, err = w.Write(slices.Concat(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body))
	return err
}

// readFrame reads a frame into v. It returns io.EOF if the connection ends between
// two frames.
func readFrame(r io.Reader, v any) error {
	var head [lengthBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length == 0 || length > maxFrameBytes {
		return fmt.Errorf("%w: a frame of %d bytes; the limit is %d", ErrProtocol, length, maxFrameBytes)
	}
	// The buffer grows with the bytes that arrive, so a wrong length allocates little.
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(length)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if err := events.CheckShape(body.Bytes()); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if err := msgpack.Unmarshal(body.Bytes(), v); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return nil
}

// ragged holds lists of numbers: their lengths, and their values one after the
// other, as little-endian blobs.
type ragged struct {
	Lengths []byte `msgpack:"n"`
	Values  []byte `msgpack:"v"`
}

// number is an element of a blob.
type number interface {
	int32 | uint64 | float32 | float64
}

// pack returns numbers as a blob.
func pack[T number](values []T) []byte {
	blob := make([]byte, 0, binary.Size(values)) // not nil, which msgpack encodes in another way
	blob, err := binary.Append(blob, binary.LittleEndian, values)
	if err != nil {
		panic(err) // the numbers have a fixed size
	}
	return blob
}

// unpack returns the numbers of a blob. name is its field.
func unpack[T number](name string, blob []byte) ([]T, error) {
	var zero T
	size := binary.Size(zero)
	if len(blob)%size != 0 {
		return nil, fmt.Errorf("%w: field %s has %d bytes, not a multiple of %d", ErrProtocol, name, len(blob), size)
	}
	values := make([]T, len(blob)/size)
	if _, err := binary.Decode(blob, binary.LittleEndian, values); err != nil {
		return nil, fmt.Errorf("%w: field %s: %w", ErrProtocol, name, err)
	}
	return values, nil
}

// packLists returns n lists of numbers as ragged.
func packLists[T number](n int, list func(i int) []T) ragged {
	lengths := make([]int32, n)
	var values []T
	for i := range n {
		lengths[i] = int32(len(list(i)))
		values = append(values, list(i)...)
	}
	return ragged{Lengths: pack(lengths), Values: pack(values)}
}

// split returns the lists of values of the given lengths.
func split[T any](name string, lengths []int32, values []T) ([][]T, error) {
	total := 0
	for _, n := range lengths {
		if n < 0 || int(n) > math.MaxInt32-total {
			return nil, fmt.Errorf("%w: field %s has a list of length %d", ErrProtocol, name, n)
		}
		total += int(n)
	}
	if total != len(values) {
		return nil, fmt.Errorf("%w: field %s has %d values, want %d", ErrProtocol, name, len(values), total)
	}
	lists := make([][]T, len(lengths))
	for i, n := range lengths {
		lists[i], values = values[:n:n], values[n:]
	}
	return lists, nil
}
