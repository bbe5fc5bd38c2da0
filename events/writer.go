package events

import (
	"encoding/binary"
	"math"
)

// writer appends msgpack.
type writer struct{ b []byte }

func (w *writer) head(fix byte, fixed int, code16 byte, n int) {
	switch {
	case n <= fixed:
		w.b = append(w.b, fix|byte(n))
	case n <= math.MaxUint16:
		w.b = binary.BigEndian.AppendUint16(append(w.b, code16), uint16(n))
	default:
		w.b = binary.BigEndian.AppendUint32(append(w.b, code16+1), uint32(n))
	}
}

// fields begins a map of n fields, and one more for each that is not empty.
func (w *writer) fields(n int, present ...bool) {
	for _, p := range present {
		if p {
			n++
		}
	}
	w.head(0x80, 15, 0xde, n)
}

func (w *writer) list(n int) { w.head(0x90, 15, 0xdc, n) }

func (w *writer) none() { w.b = append(w.b, 0xc0) }

func (w *writer) text(s string) {
	if n := len(s); n > 31 && n <= math.MaxUint8 {
		w.b = append(w.b, 0xd9, byte(n))
	} else {
		w.head(0xa0, 31, 0xda, n)
	}
	w.b = append(w.b, s...)
}

func (w *writer) bin(n int) {
	if n <= math.MaxUint8 {
		w.b = append(w.b, 0xc4, byte(n))
	} else {
		w.head(0, -1, 0xc5, n)
	}
}

func (w *writer) uint(v uint64) {
	switch {
	case v <= math.MaxInt8:
		w.b = append(w.b, byte(v))
	case v <= math.MaxUint8:
		w.b = append(w.b, 0xcc, byte(v))
	case v <= math.MaxUint16:
		w.b = binary.BigEndian.AppendUint16(append(w.b, 0xcd), uint16(v))
	case v <= math.MaxUint32:
		w.b = binary.BigEndian.AppendUint32(append(w.b, 0xce), uint32(v))
	default:
		w.b = binary.BigEndian.AppendUint64(append(w.b, 0xcf), v)
	}
}

func (w *writer) int(v int64) {
	switch {
	case v >= 0:
		w.uint(uint64(v))
	case v >= -32:
		w.b = append(w.b, byte(v))
	case v >= math.MinInt8:
		w.b = append(w.b, 0xd0, byte(v))
	case v >= math.MinInt16:
		w.b = binary.BigEndian.AppendUint16(append(w.b, 0xd1), uint16(v))
	case v >= math.MinInt32:
		w.b = binary.BigEndian.AppendUint32(append(w.b, 0xd2), uint32(v))
	default:
		w.b = binary.BigEndian.AppendUint64(append(w.b, 0xd3), uint64(v))
	}
}

func (w *writer) bool(v bool) {
	if v {
		w.b = append(w.b, 0xc3)
	} else {
		w.b = append(w.b, 0xc2)
	}
}

// A field is its name and its value.

func (w *writer) textField(name, s string)          { w.text(name); w.text(s) }
func (w *writer) intField(name string, v int)       { w.text(name); w.int(int64(v)) }
func (w *writer) boolField(name string, v bool)     { w.text(name); w.bool(v) }
func (w *writer) uintField(name string, v uint64)   { w.text(name); w.uint(v) }
func (w *writer) floatField(name string, v float64) { w.text(name); w.float(v) }

func (w *writer) float(v float64) {
	w.b = binary.BigEndian.AppendUint64(append(w.b, 0xcb), math.Float64bits(v))
}

// The optional ones are left out when they are empty.

func (w *writer) optionalText(name, s string) {
	if s != "" {
		w.textField(name, s)
	}
}

func (w *writer) optionalBool(name string, v bool) {
	if v {
		w.boolField(name, v)
	}
}

// writeWanted writes a list of what write writes; nil for nil.
func writeWanted[T any](w *writer, name string, all []T, write func(v *T, w *writer)) {
	w.text(name)
	writeList(w, all, write)
}

func writeList[T any](w *writer, all []T, write func(v *T, w *writer)) {
	if all == nil {
		w.none()
		return
	}
	w.list(len(all))
	for i := range all {
		write(&all[i], w)
	}
}

func writeOptional[T any](w *writer, name string, all []T, write func(v *T, w *writer)) {
	if len(all) > 0 {
		writeWanted(w, name, all, write)
	}
}

func writeText(s *string, w *writer) { w.text(*s) }
