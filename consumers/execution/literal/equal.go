package literal

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// Equal reports whether a == b in Python, for values of two processes:
// 1 == 1.0 == True, a list never equals a tuple, a set equals a frozenset of
// the same elements, and the order of a set or dict does not count. NaN equals
// nothing, and neither does a container that holds one.
func Equal(a, b Value) bool {
	return !a.hasNaN() && !b.hasNaN() && Key(a) == Key(b)
}

// SelfEqual reports whether v equals another copy of itself. A value that holds
// NaN does not, so no answer can match it.
func SelfEqual(v Value) bool { return !v.hasNaN() }

// Key returns a string that two values share if and only if they are equal; all
// NaNs count as equal here. It is for maps and duplicates, not for people.
func Key(v Value) string {
	if p, ok := v.(packed); ok {
		return p.key
	}
	return string(v.appendKey(nil))
}

func (None) appendKey(dst []byte) []byte { return append(dst, 'N') }

func (b Bool) appendKey(dst []byte) []byte {
	if b {
		return append(dst, "i1;"...)
	}
	return append(dst, "i0;"...)
}

func (i *Int) appendKey(dst []byte) []byte {
	// Base 16 is linear in the number of digits.
	dst = append(dst, 'i')
	if i.big.IsInt64() {
		return append(strconv.AppendInt(dst, i.big.Int64(), 16), ';')
	}
	// A large float is a whole number with many zero bits at its end.
	zeros := i.big.TrailingZeroBits()
	dst = new(big.Int).Rsh(&i.big, zeros).Append(dst, 16)
	return append(strconv.AppendUint(append(dst, 'p'), uint64(zeros), 16), ';')
}

func (f Float) appendKey(dst []byte) []byte {
	x := float64(f)
	if math.IsNaN(x) {
		return append(dst, 'n')
	}
	if x == math.Trunc(x) && !math.IsInf(x, 0) {
		whole, _ := new(big.Float).SetFloat64(x).Int(nil)
		return BigInt(whole).appendKey(dst)
	}
	return binary.BigEndian.AppendUint64(append(dst, 'f'), math.Float64bits(x))
}

// A complex number without an imaginary part equals the float.
func (c Complex) appendKey(dst []byte) []byte {
	if imag(c) == 0 {
		return Float(real(c)).appendKey(dst)
	}
	return Float(imag(c)).appendKey(Float(real(c)).appendKey(append(dst, 'c')))
}

func (s Str) appendKey(dst []byte) []byte   { return appendSized(dst, 's', string(s)) }
func (b Bytes) appendKey(dst []byte) []byte { return appendSized(dst, 'b', string(b)) }

// appendSized writes the length first, so that no content reads as the end of the
// value.
func appendSized(dst []byte, tag byte, s string) []byte {
	dst = binary.AppendUvarint(append(dst, tag), uint64(len(s)))
	return append(dst, s...)
}

func (l List) appendKey(dst []byte) []byte {
	dst = append(dst, '[')
	for _, v := range l {
		dst = v.appendKey(dst)
	}
	return append(dst, ']')
}

func (t Tuple) appendKey(dst []byte) []byte {
	dst = append(dst, '(')
	for _, v := range t {
		dst = v.appendKey(dst)
	}
	return append(dst, ')')
}

func (s Set) appendKey(dst []byte) []byte {
	keys := make([]string, len(s))
	for i, v := range s {
		keys[i] = Key(v)
	}
	return appendSorted(append(dst, '{'), keys)
}

func (s FrozenSet) appendKey(dst []byte) []byte { return Set(s).appendKey(dst) }

func (d Dict) appendKey(dst []byte) []byte {
	keys := make([]string, len(d))
	for i, e := range d {
		keys[i] = string(e.Value.appendKey(e.Key.appendKey(nil)))
	}
	return appendSorted(append(dst, 'd'), keys)
}

func appendSorted(dst []byte, keys []string) []byte {
	slices.Sort(keys)
	for _, k := range keys {
		dst = append(dst, k...)
	}
	return append(dst, '}')
}

func (None) hasNaN() bool        { return false }
func (Bool) hasNaN() bool        { return false }
func (*Int) hasNaN() bool        { return false }
func (Str) hasNaN() bool         { return false }
func (Bytes) hasNaN() bool       { return false }
func (f Float) hasNaN() bool     { return math.IsNaN(float64(f)) }
func (c Complex) hasNaN() bool   { return Float(real(c)).hasNaN() || Float(imag(c)).hasNaN() }
func (l List) hasNaN() bool      { return slices.ContainsFunc(l, Value.hasNaN) }
func (t Tuple) hasNaN() bool     { return slices.ContainsFunc(t, Value.hasNaN) }
func (s Set) hasNaN() bool       { return slices.ContainsFunc(s, Value.hasNaN) }
func (s FrozenSet) hasNaN() bool { return slices.ContainsFunc(s, Value.hasNaN) }

func (d Dict) hasNaN() bool {
	return slices.ContainsFunc(d, func(e Entry) bool { return e.Key.hasNaN() || e.Value.hasNaN() })
}
