package literal

import (
	"strings"
	"unicode/utf8"
)

// Sizes returns the number of characters or elements of each argument of a call
// that is a text or a collection. Nested elements do not count: [[1, 2]] has one
// element. Sizes returns nil for a call with an argument that is no literal.
func Sizes(call string) []int {
	open := strings.IndexByte(call, '(')
	if open < 0 {
		return nil
	}
	arguments, err := ParseArguments(call[open:])
	if err != nil {
		return nil
	}
	var sizes []int
	for _, a := range arguments {
		switch v := a.Value.(type) {
		case Str:
			sizes = append(sizes, utf8.RuneCountInString(string(v)))
		case Bytes:
			sizes = append(sizes, len(v))
		case List:
			sizes = append(sizes, len(v))
		case Tuple:
			sizes = append(sizes, len(v))
		case Set:
			sizes = append(sizes, len(v))
		case FrozenSet:
			sizes = append(sizes, len(v))
		case Dict:
			sizes = append(sizes, len(v))
		}
	}
	return sizes
}
