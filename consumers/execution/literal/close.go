package literal

import (
	"math"
	"reflect"
)

// closeRelative is the relative part of the tolerance of Close.
const closeRelative = 1e-7

// Close reports whether a is b up to a tolerance, by EvalPlus's definition: a equals
// b, or both have the same type and, as lists or tuples, the same length, and each
// number x of a is within atol + 1e-7*|y| of the number y of b in its place. Lists
// and tuples within them must have the same lengths. A tolerance of 0 means Equal.
func Close(a, b Value, atol float64) bool {
	if Equal(a, b) {
		return true
	}
	if atol <= 0 {
		return false
	}
	a, b = unpack(a), unpack(b)
	return reflect.TypeOf(a) == reflect.TypeOf(b) && near(a, b, atol)
}

// unpack returns the value that was packed.
func unpack(v Value) Value {
	if p, ok := v.(packed); ok {
		if whole, err := Parse(p.text); err == nil { // it was a value before
			return whole
		}
	}
	return v
}

// near compares numbers, and the items of lists and tuples in pairs. Within a list a
// tuple counts as a list, and an int as a float.
func near(a, b Value, atol float64) bool {
	if as, ok := items(a); ok {
		bs, ok := items(b)
		if !ok || len(as) != len(bs) {
			return false
		}
		for i := range as {
			if !near(as[i], bs[i], atol) {
				return false
			}
		}
		return true
	}
	x, ok := number(a)
	if !ok {
		return false
	}
	y, ok := number(b)
	if !ok {
		return false
	}
	if x == y {
		return true
	}
	size := math.Hypot(real(y), imag(y))
	return !math.IsInf(size, 0) && math.Hypot(real(x)-real(y), imag(x)-imag(y)) <= atol+closeRelative*size
}

func items(v Value) ([]Value, bool) {
	switch v := v.(type) {
	case List:
		return v, true
	case Tuple:
		return v, true
	}
	return nil, false
}

func number(v Value) (complex128, bool) {
	switch v := v.(type) {
	case Bool:
		if v {
			return 1, true
		}
		return 0, true
	case *Int:
		x, _ := v.big.Float64()
		return complex(x, 0), true
	case Float:
		return complex(float64(v), 0), true
	case Complex:
		return complex128(v), true
	}
	return 0, false
}

// Real returns the real number that a value is, and false for other values.
func Real(v Value) (float64, bool) {
	x, ok := number(v)
	return real(x), ok && imag(x) == 0
}
