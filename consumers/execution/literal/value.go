package literal

import "math/big"

// Value is one of None, Bool, Int, Float, Complex, Str, Bytes, List, Tuple,
// Dict, Set and FrozenSet, or the packed form of one (Pack). Parse packs tuples and
// frozensets that are elements of a set or keys of a dict. Values are immutable.
type Value interface {
	appendText(dst []byte) []byte
	appendKey(dst []byte) []byte
	hasNaN() bool
	hashable() bool
}

// None is Python's None.
type None struct{}

// Bool is a Python bool.
type Bool bool

// Int is a Python int, of any size. The zero Int is 0.
type Int struct{ big big.Int }

// NewInt returns the Int of n.
func NewInt(n int64) *Int {
	i := new(Int)
	i.big.SetInt64(n)
	return i
}

// BigInt returns the Int of n.
func BigInt(n *big.Int) *Int {
	i := new(Int)
	i.big.Set(n)
	return i
}

// Float is a Python float.
type Float float64

// Complex is a Python complex.
type Complex complex128

// Str is a Python str in UTF-8. Python allows a lone surrogate and UTF-8 does not;
// it is kept as the three bytes of its code point.
type Str string

// Bytes is a Python bytes object.
type Bytes string

// List is a Python list.
type List []Value

// Tuple is a Python tuple.
type Tuple []Value

// Set is a Python set; its elements are hashable and distinct.
type Set []Value

// FrozenSet is a Python frozenset; its elements are hashable and distinct.
type FrozenSet []Value

// Dict is a Python dict in insertion order; its keys are hashable and distinct.
type Dict []Entry

// Entry is one item of a Dict.
type Entry struct{ Key, Value Value }

func (None) hashable() bool      { return true }
func (Bool) hashable() bool      { return true }
func (*Int) hashable() bool      { return true }
func (Float) hashable() bool     { return true }
func (Complex) hashable() bool   { return true }
func (Str) hashable() bool       { return true }
func (Bytes) hashable() bool     { return true }
func (FrozenSet) hashable() bool { return true }
func (List) hashable() bool      { return false }
func (Set) hashable() bool       { return false }
func (Dict) hashable() bool      { return false }

func (t Tuple) hashable() bool {
	for _, v := range t {
		if !v.hashable() {
			return false
		}
	}
	return true
}
