// Package shape checks msgpack bytes before they are decoded.
package shape

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Check walks msgpack bytes without decoding them. It accepts exactly one map, nested at
// most maxDepth deep, with at most maxItems items in every list and map, in which every
// length fits into the remaining bytes. msgpack's decoder trusts the lengths that it reads: five bytes can make
// it allocate hundreds of megabytes.
func Check(raw []byte, maxDepth, maxItems int) error {
	if len(raw) == 0 {
		return errors.New("empty")
	}
	if c := raw[0]; c>>4 != 0x8 && c != 0xde && c != 0xdf {
		return errors.New("byte 0: not a map")
	}
	s := shape{raw: raw, maxDepth: maxDepth, maxItems: maxItems}
	if err := s.value(0); err != nil {
		return err
	}
	if s.pos != len(raw) {
		return fmt.Errorf("byte %d: %d bytes after the payload", s.pos, len(raw)-s.pos)
	}
	return nil
}

type shape struct {
	raw                []byte
	pos                int
	maxDepth, maxItems int
}

func (s *shape) fail(format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", s.pos, fmt.Sprintf(format, args...))
}

// number reads a big-endian unsigned length of 1, 2 or 4 bytes.
func (s *shape) number(width int) (int, error) {
	if len(s.raw)-s.pos < width {
		return 0, s.fail("cut off in a length")
	}
	b := s.raw[s.pos:]
	s.pos += width
	switch width {
	case 1:
		return int(b[0]), nil
	case 2:
		return int(binary.BigEndian.Uint16(b)), nil
	}
	return int(binary.BigEndian.Uint32(b)), nil
}

func (s *shape) skip(n int) error {
	if n > len(s.raw)-s.pos {
		return s.fail("a value of %d bytes, %d left", n, len(s.raw)-s.pos)
	}
	s.pos += n
	return nil
}

func (s *shape) sized(width int) error {
	n, err := s.number(width)
	if err != nil {
		return err
	}
	return s.skip(n)
}

func (s *shape) list(values, depth int) error {
	if values > 2*s.maxItems || values > len(s.raw)-s.pos {
		return s.fail("a list or map of %d values, %d bytes left, limit %d items", values, len(s.raw)-s.pos, s.maxItems)
	}
	if depth >= s.maxDepth {
		return s.fail("nested deeper than %d", s.maxDepth)
	}
	for range values {
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

func (s *shape) counted(width, perItem, depth int) error {
	n, err := s.number(width)
	if err != nil {
		return err
	}
	return s.list(n*perItem, depth)
}

// value accepts one value. The cases follow the table "Formats" of the msgpack
// specification. Extension types are not used and are refused.
func (s *shape) value(depth int) error {
	if s.pos >= len(s.raw) {
		return s.fail("cut off")
	}
	c := s.raw[s.pos]
	s.pos++
	switch {
	case c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3:
		return nil // fixint, nil, bool
	case c <= 0x8f:
		return s.list(2*int(c&0x0f), depth) // fixmap
	case c <= 0x9f:
		return s.list(int(c&0x0f), depth) // fixarray
	case c <= 0xbf:
		return s.skip(int(c & 0x1f)) // fixstr
	}
	switch c {
	case 0xc4, 0xd9:
		return s.sized(1)
	case 0xc5, 0xda:
		return s.sized(2)
	case 0xc6, 0xdb:
		return s.sized(4)
	case 0xcc, 0xd0:
		return s.skip(1)
	case 0xcd, 0xd1:
		return s.skip(2)
	case 0xca, 0xce, 0xd2:
		return s.skip(4)
	case 0xcb, 0xcf, 0xd3:
		return s.skip(8)
	case 0xdc:
		return s.counted(2, 1, depth)
	case 0xdd:
		return s.counted(4, 1, depth)
	case 0xde:
		return s.counted(2, 2, depth)
	case 0xdf:
		return s.counted(4, 2, depth)
	}
	s.pos--
	return s.fail("format byte %#02x is not used here", c)
}
