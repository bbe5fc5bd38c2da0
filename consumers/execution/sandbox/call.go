package sandbox

import (
	"encoding/binary"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"codea1/consumers/execution/literal"
)

// Most calls are an entry point with literals for arguments. To compile such a call
// costs the child several times as much as to make the arguments. So such a call goes
// by value: the marshal data of a tuple of its positional arguments and a dict of the
// named ones. All other calls go as text.
//
// A program must not be able to tell the two apart. So a call goes by value only if
// its arguments are written as ast.unparse writes plain literals. The compiler makes
// one object of equal constants, and programs do compare with `is`, so the data refer
// to a constant that occurs again. A tuple of constants is a constant itself. With a
// constant in a tuple that occurs again, a call goes as text.

var (
	// plainEntry matches an entry point that a call can begin with as it is.
	plainEntry = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\(\))?(\.[A-Za-z_][A-Za-z0-9_]*(\(\))?)*$`)
	floats     = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$`)
)

// notArguments are words that Python refuses as the name of an argument.
var notArguments = strings.Fields(`__debug__ False None True and as assert async await break class continue def del elif else
	except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield`)

// IsArgumentName reports whether name can be the name of an argument.
func IsArgumentName(name string) bool {
	return plainName.MatchString(name) && !slices.Contains(notArguments, name)
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

const (
	maxValueDepth = 20 // Python parses ten times as much
	maxIntDigits  = 18 // of an int64, with room to spare
)

// valueWriter reads Python text and writes marshal data. Its methods report
// whether the text that they read can go by value.
type valueWriter struct {
	text string // the rest
	data []byte

	tuples int            // that are open
	once   map[string]int // the constants so far, as data, and their numbers; inTuple for those in a tuple
	refs   int            // numbers that are given
}

const (
	inTuple = -1
	// A value with the flag gets the next number. A later 'r' with its number is the
	// same object.
	flagRef = 0x80
)

// changes are the texts around an entry point in a call that also returns the arguments
// after it, as harness/arguments.py has them.
var changes = [2]string{"(lambda *_a, **_k: (", "(*_a, **_k), _a, _k))"}

// AlsoArguments returns the function of a call that also returns its arguments.
func AlsoArguments(entry string) string { return changes[0] + entry + changes[1] }

// appendCall appends the arguments of a call of the entry point to data. A third item,
// True, says that the call also returns them. It reports whether the call can go by
// value; if not, data is as it was.
func appendCall(data []byte, entry, call string) ([]byte, bool) {
	w := valueWriter{text: call, data: data}
	items := byte(2)
	if w.take(changes[0]) {
		items = 3
	}
	if !w.take(entry) || items == 3 && !w.take(changes[1]) || !w.take("(") {
		return data, false
	}
	w.data = append(w.data, '(', items, 0, 0, 0)
	if !w.arguments() || w.text != "" {
		return data, false
	}
	if items == 3 {
		w.data = append(w.data, 'T')
	}
	return w.data, true
}

func (w *valueWriter) take(text string) (ok bool) {
	w.text, ok = strings.CutPrefix(w.text, text)
	return ok
}

// arguments reads the arguments of a call up to the closing bracket.
func (w *valueWriter) arguments() bool {
	w.data = append(w.data, '(')
	positional := w.count()
	var names []string
	for first := true; !w.take(")"); first = false {
		if !first && !w.take(", ") {
			return false
		}
		if name := w.name(); name != "" {
			if slices.Contains(notArguments, name) || slices.Contains(names, name) {
				return false
			}
			if names = append(names, name); len(names) == 1 {
				w.data = append(w.data, '{')
			}
			w.string(name)
		} else if len(names) == 0 {
			w.one(positional)
		} else {
			return false
		}
		if _, ok := w.value(maxValueDepth); !ok {
			return false
		}
	}
	if len(names) == 0 {
		w.data = append(w.data, '{')
	}
	w.data = append(w.data, '0')
	return true
}

// name reads the name of an argument with its equals sign. It returns "" if the
// next argument has no name.
func (w *valueWriter) name() string {
	end := 0
	for end < len(w.text) && isWordByte(w.text[end]) {
		end++
	}
	if end == 0 || end == len(w.text) || w.text[end] != '=' || w.text[0] >= '0' && w.text[0] <= '9' {
		return ""
	}
	name := w.text[:end]
	w.text = w.text[end+1:]
	return name
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// count leaves room for a count and returns its position.
func (w *valueWriter) count() int {
	w.data = append(w.data, 0, 0, 0, 0)
	return len(w.data) - 4
}

// one adds 1 to the count at a position.
func (w *valueWriter) one(count int) {
	field := w.data[count:]
	binary.LittleEndian.PutUint32(field, binary.LittleEndian.Uint32(field)+1)
}

// value reads one value. It also reports whether Python takes it for a constant.
func (w *valueWriter) value(depth int) (constant, ok bool) {
	start := len(w.data)
	switch {
	case depth == 0:
		return false, false
	case w.take("None"):
		w.data = append(w.data, 'N')
		return true, true
	case w.take("True"):
		w.data = append(w.data, 'T')
		return true, true
	case w.take("False"):
		w.data = append(w.data, 'F')
		return true, true
	case w.take("'"):
		return true, w.quoted('\'')
	case w.take(`"`):
		return true, w.quoted('"')
	case w.take("["):
		w.data = append(w.data, '[')
		_, ok := w.items("]", depth-1)
		return false, ok
	case w.take("("):
		w.data = append(w.data, '(')
		w.tuples++
		constant, ok := w.items(")", depth-1)
		ok = ok && (!constant || w.constant(start)) // without a number
		w.tuples--
		return constant, ok
	case w.take("{"):
		w.data = append(w.data, '{')
		return false, w.pairs(depth - 1)
	}
	return true, w.number()
}

// items reads the items of a list or tuple and reports whether all are constants.
func (w *valueWriter) items(closing string, depth int) (constants, ok bool) {
	count, constants := w.count(), true
	for items := 0; !w.take(closing); items++ {
		if items > 0 && !w.take(", ") {
			return false, false
		}
		constant, ok := w.value(depth)
		if !ok {
			return false, false
		}
		w.one(count)
		constants = constants && constant
		if closing == ")" && items == 0 && !strings.HasPrefix(w.text, ", ") && !w.take(",") {
			return false, false // a value in brackets is no tuple
		}
	}
	return constants, true
}

// pairs reads the items of a dict.
func (w *valueWriter) pairs(depth int) bool {
	for first := true; !w.take("}"); first = false {
		if !first && !w.take(", ") {
			return false
		}
		if constant, ok := w.value(depth); !ok || !constant || !w.take(": ") {
			return false
		}
		if _, ok := w.value(depth); !ok {
			return false
		}
	}
	w.data = append(w.data, '0')
	return true
}

// quoted reads a string up to its closing quote.
func (w *valueWriter) quoted(quote byte) bool {
	end, plain := 0, true
	for ; end < len(w.text) && w.text[end] != quote; end++ {
		switch c := w.text[end]; {
		case c < ' ':
			return false // Python may read another character
		case c == '\\':
			plain = false
			end++
		case c > '~':
			plain = false
		}
	}
	if end >= len(w.text) {
		return false
	}
	text := w.text[:end]
	if !plain {
		v, err := literal.Parse(string(quote) + w.text[:end+1])
		if err != nil {
			return false
		}
		text = string(v.(literal.Str))
	}
	w.text = w.text[end+1:]
	start := len(w.data)
	return w.string(text) || w.constant(start)
}

// string writes a string. It reports whether Python keeps one object for all
// equal strings of its kind.
func (w *valueWriter) string(text string) (interned bool) {
	kind := byte('A')
	for i := range len(text) {
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			kind = 'u'
		case kind == 'A' && !isWordByte(c):
			kind = 'a'
		}
	}
	w.data = append(w.data, kind)
	w.data = binary.LittleEndian.AppendUint32(w.data, uint32(len(text)))
	w.data = append(w.data, text...)
	return kind == 'A' || len(text) == 1
}

func (w *valueWriter) number() bool {
	end := 0
	for end < len(w.text) && strings.IndexByte("0123456789.e+-", w.text[end]) >= 0 {
		end++
	}
	text := w.text[:end]
	w.text = w.text[end:]
	start := len(w.data)
	if strings.ContainsAny(text, ".e") {
		f, err := strconv.ParseFloat(text, 64)
		w.data = binary.LittleEndian.AppendUint64(append(w.data, 'g'), math.Float64bits(f))
		return floats.MatchString(text) && err == nil && w.constant(start)
	}
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || len(digits) > maxIntDigits || digits[0] == '0' && digits != "0" {
		return false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || digits[0] == '+' {
		return false
	}
	w.int(n)
	return n >= -5 && n <= 256 || w.constant(start) // Python keeps one object of each small int
}

func (w *valueWriter) int(n int64) {
	if int64(int32(n)) == n {
		w.data = binary.LittleEndian.AppendUint32(append(w.data, 'i'), uint32(n))
		return
	}
	w.data = append(w.data, 'l')
	count := w.count()
	magnitude := uint64(max(n, -n))
	digits := int32(0)
	for ; magnitude > 0; magnitude >>= 15 {
		w.data = binary.LittleEndian.AppendUint16(w.data, uint16(magnitude&(1<<15-1)))
		digits++
	}
	if n < 0 {
		digits = -digits
	}
	binary.LittleEndian.PutUint32(w.data[count:], uint32(digits))
}

// constant gives the constant that begins at start a number, or refers to an equal one
// before it. It reports whether the call can still go by value.
func (w *valueWriter) constant(start int) bool {
	if w.once == nil {
		w.once = map[string]int{}
	}
	key := string(w.data[start:])
	number, known := w.once[key]
	switch {
	case known && (w.tuples > 0 || number == inTuple):
		return false
	case known:
		w.data = binary.LittleEndian.AppendUint32(append(w.data[:start], 'r'), uint32(number))
	case w.tuples > 0:
		w.once[key] = inTuple
	default:
		w.once[key] = w.refs
		w.refs++
		w.data[start] |= flagRef
	}
	return true
}
