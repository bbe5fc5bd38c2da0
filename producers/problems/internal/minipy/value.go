package minipy

import "strconv"

// Value is a Python value: Int, Bool, Str, List, Set, Stream or None.
type Value interface {
	// append writes the value as a compact Python literal. With numeric set,
	// booleans are written as the ints they are equal to.
	append(dst []byte, numeric bool) []byte
}

type (
	// Int is a Python int that fits a machine word; arithmetic beyond that
	// raises OverflowError.
	Int int
	// Bool is True or False, equal to 1 or 0.
	Bool bool
	// Str is a string of ASCII characters.
	Str string
	// List is a list.
	List []Value
	// Stream is a generator, map, zip or enumerate: it can be iterated, but has
	// no length, no items by index and no equal. Reading it does not use it up.
	Stream []Value
	// Set is a set in order of first insertion.
	Set []Value
	// None is None.
	None struct{}
)

// Literal returns the value as a Python literal without spaces, for example
// [3,-1,'ab',True].
func Literal(v Value) string { return string(v.append(nil, false)) }

// AppendKey appends a text that two values share exactly when Python's == holds
// between them.
func AppendKey(dst []byte, v Value) []byte { return v.append(dst, true) }

// Equal is Python's ==.
func Equal(a, b Value) bool {
	switch a := a.(type) {
	case Int:
		n, ok := number(b)
		return ok && int(a) == n
	case Bool:
		n, ok := number(b)
		return ok && boolInt(bool(a)) == n
	case Str:
		b, ok := b.(Str)
		return ok && a == b
	case List:
		b, ok := b.(List)
		return ok && equalItems(a, b)
	case Set:
		b, ok := b.(Set)
		if !ok || len(a) != len(b) {
			return false
		}
		for _, v := range a {
			if !contains(b, v) {
				return false
			}
		}
		return true
	case None:
		_, ok := b.(None)
		return ok
	default:
		return false
	}
}

func equalItems(a, b []Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func contains(items []Value, v Value) bool {
	for _, item := range items {
		if Equal(item, v) {
			return true
		}
	}
	return false
}

// Truthy is Python's bool().
func Truthy(v Value) bool {
	switch v := v.(type) {
	case Int:
		return v != 0
	case Bool:
		return bool(v)
	case Str:
		return v != ""
	case List:
		return len(v) > 0
	case Set:
		return len(v) > 0
	case Stream:
		return true
	default:
		return false
	}
}

// number returns the value of an int or bool.
func number(v Value) (int, bool) {
	switch v := v.(type) {
	case Int:
		return int(v), true
	case Bool:
		return boolInt(bool(v)), true
	default:
		return 0, false
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// smallInts holds boxed Ints so that evaluation rarely allocates.
var smallInts = func() (boxed [2048]Value) {
	for i := range boxed {
		boxed[i] = Int(i - 1024)
	}
	return boxed
}()

func intValue(n int) Value {
	if n >= -1024 && n < 1024 {
		return smallInts[n+1024]
	}
	return Int(n)
}

func (v Int) append(dst []byte, _ bool) []byte { return strconv.AppendInt(dst, int64(v), 10) }

func (v Bool) append(dst []byte, numeric bool) []byte {
	switch {
	case numeric:
		return strconv.AppendInt(dst, int64(boolInt(bool(v))), 10)
	case bool(v):
		return append(dst, "True"...)
	default:
		return append(dst, "False"...)
	}
}

func (v Str) append(dst []byte, _ bool) []byte {
	dst = append(dst, '\'')
	for i := range len(v) {
		if v[i] == '\'' || v[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, v[i])
	}
	return append(dst, '\'')
}

func (v List) append(dst []byte, numeric bool) []byte {
	return append(appendItems(append(dst, '['), v, numeric), ']')
}

func (v Set) append(dst []byte, numeric bool) []byte {
	if len(v) == 0 {
		return append(dst, "set()"...)
	}
	return append(appendItems(append(dst, '{'), v, numeric), '}')
}

func (Stream) append(dst []byte, _ bool) []byte { return append(dst, "<stream>"...) }

func (None) append(dst []byte, _ bool) []byte { return append(dst, "None"...) }

func appendItems(dst []byte, items []Value, numeric bool) []byte {
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = item.append(dst, numeric)
	}
	return dst
}
