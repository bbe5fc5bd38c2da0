package literal

import "strings"

// TrivialInput reports whether a call has an empty or one-element input: at least
// one argument is a text or a collection, the texts are empty, and the collections
// have at most one element. Nested elements do not count: [[1, 2]] has one element.
// A call with an argument that is no literal has no trivial input.
func TrivialInput(call string) bool {
	open := strings.IndexByte(call, '(')
	if open < 0 {
		return false
	}
	arguments, err := ParseArguments(call[open:])
	if err != nil {
		return false
	}
	trivial := false
	for _, a := range arguments {
		elements, most := 0, 1
		switch v := a.Value.(type) {
		case Str:
			elements, most = len(v), 0
		case Bytes:
			elements, most = len(v), 0
		case List:
			elements = len(v)
		case Tuple:
			elements = len(v)
		case Set:
			elements = len(v)
		case FrozenSet:
			elements = len(v)
		case Dict:
			elements = len(v)
		default:
			continue
		}
		if elements > most {
			return false
		}
		trivial = true
	}
	return trivial
}
