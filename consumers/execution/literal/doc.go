// Package literal holds the Python values that can cross a process border:
// None, bool, int, float, complex, str, bytes, list, tuple, dict, set and frozenset,
// nested. A value travels and is recorded as Python literal text.
//
// It owns the text form (Parse, Text), Python's equality (Equal) and a key
// under which equal values meet (Key). It must not know where a value comes
// from or how a comparison is used, and it runs no Python.
//
// Start reading at value.go, then equal.go.
package literal
