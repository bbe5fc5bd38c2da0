package literal

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxTextBytes bounds the text of one value.
	MaxTextBytes = 8 << 20
	// MaxDepth bounds how deep containers nest.
	MaxDepth = 64
	// MaxIntDigits bounds a whole number. The time to read one grows faster than its
	// text: 4 million digits take half a minute.
	MaxIntDigits = 1 << 15
)

// ErrSyntax is returned for text that is not a literal within the limits.
var ErrSyntax = errors.New("not a Python literal")

// Parse reads one value from Python literal text: the output of Text and of
// repr, with any blanks, trailing commas and either quote. It is not a Python
// parser: it refuses prefixes other than b, numbers in octal or binary and joined
// strings. A key or element given twice counts once, as in Python. The error is
// ErrSyntax with the byte offset.
func Parse(text string) (Value, error) {
	if len(text) > MaxTextBytes {
		return nil, fmt.Errorf("%w: %d bytes, over the limit of %d", ErrSyntax, len(text), MaxTextBytes)
	}
	p := parser{text: text}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.blanks(); p.pos != len(text) {
		return nil, p.fail("more text after the value")
	}
	return v, nil
}

// Argument is one argument of a call.
type Argument struct {
	Name  string // empty: positional
	Value Value
}

// ParseArguments reads the arguments of a call, in brackets. The error is as
// Parse's.
func ParseArguments(text string) ([]Argument, error) {
	p := parser{text: text}
	if len(text) > MaxTextBytes || !p.take("(") {
		return nil, p.fail("want the arguments of a call")
	}
	var arguments []Argument
	for !p.take(")") {
		if len(arguments) > 0 && !p.take(",") {
			return nil, p.fail("want a comma")
		}
		a := Argument{Name: p.parameter()}
		var err error
		if a.Value, err = p.value(0); err != nil {
			return nil, err
		}
		arguments = append(arguments, a)
	}
	if p.blanks(); p.pos != len(text) {
		return nil, p.fail("more text after the arguments")
	}
	return arguments, nil
}

// parameter reads the name of a parameter and the equals sign after it. It returns an
// empty text if neither is there.
func (p *parser) parameter() string {
	p.blanks()
	rest := p.text[p.pos:]
	end := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if end <= 0 || rest[end] != '=' {
		return ""
	}
	p.pos += end + 1
	return rest[:end]
}

type parser struct {
	text string
	pos  int
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("%w: byte %d: %s", ErrSyntax, p.pos, fmt.Sprintf(format, args...))
}

func (p *parser) blanks() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

// take consumes s, after blanks, if it comes next.
func (p *parser) take(s string) bool {
	p.blanks()
	if !strings.HasPrefix(p.text[p.pos:], s) {
		return false
	}
	p.pos += len(s)
	return true
}

// peek returns the next byte after blanks, or 0 at the end.
func (p *parser) peek() byte {
	p.blanks()
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

func (p *parser) value(depth int) (Value, error) {
	if depth > MaxDepth {
		return nil, p.fail("nested deeper than %d", MaxDepth)
	}
	switch c := p.peek(); {
	case c == '[':
		p.pos++
		items, _, err := p.items(']', depth)
		return List(items), err
	case c == '(':
		p.pos++
		items, comma, err := p.items(')', depth)
		if err == nil && len(items) == 1 && !comma {
			return items[0], nil
		}
		return Tuple(items), err
	case c == '{':
		p.pos++
		return p.braces(depth)
	case c == '\'' || c == '"':
		s, err := p.quoted(false)
		return Str(s), err
	case c == 'b':
		p.pos++
		s, err := p.quoted(true)
		return Bytes(s), err
	case c == '-' || c == '.' || c >= '0' && c <= '9':
		return p.number()
	}
	return p.name(depth)
}

// name reads a value that begins with a word. A call's parenthesis is part of the
// word.
func (p *parser) name(depth int) (Value, error) {
	switch {
	case p.take("None"):
		return None{}, nil
	case p.take("True"):
		return Bool(true), nil
	case p.take("False"):
		return Bool(false), nil
	case p.take("inf"):
		return Float(math.Inf(1)), nil
	case p.take("nan"):
		return Float(math.NaN()), nil
	case p.take("float('inf')"):
		return Float(math.Inf(1)), nil
	case p.take("float('-inf')"):
		return Float(math.Inf(-1)), nil
	case p.take("float('nan')"):
		return Float(math.NaN()), nil
	case p.take("complex("):
		return p.complex(depth)
	case p.take("set()"):
		return Set{}, nil
	case p.take("frozenset("):
		if p.take(")") {
			return FrozenSet{}, nil
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		set, ok := v.(Set)
		if !ok || !p.take(")") {
			return nil, p.fail("frozenset takes one set")
		}
		return FrozenSet(set), nil
	}
	return nil, p.fail("no value starts here")
}

// complex reads the two floats of complex(real, imaginary).
func (p *parser) complex(depth int) (Value, error) {
	var parts [2]Float
	for i, after := range []string{",", ")"} {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		part, ok := v.(Float)
		if !ok || !p.take(after) {
			return nil, p.fail("complex takes two floats")
		}
		parts[i] = part
	}
	return Complex(complex(parts[0], parts[1])), nil
}

// items reads values up to the closing byte; comma tells whether one was seen.
func (p *parser) items(closing byte, depth int) (items []Value, comma bool, err error) {
	for {
		if p.peek() == closing {
			p.pos++
			return items, comma, nil
		}
		if len(items) > 0 && !comma {
			return nil, false, p.fail("want a comma or %q", closing)
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, false, err
		}
		items = append(items, v)
		more := p.take(",")
		if !more && p.peek() != closing {
			return nil, false, p.fail("want a comma or %q", closing)
		}
		comma = comma || more
	}
}

func (p *parser) braces(depth int) (Value, error) {
	if p.take("}") {
		return Dict{}, nil
	}
	var dict Dict
	var set Set
	seen := map[string]int{}
	for p.peek() != '}' {
		key, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if !key.hashable() {
			return nil, p.fail("a key or element that cannot be hashed")
		}
		id := Key(key)
		switch key.(type) {
		case Tuple, FrozenSet:
			// The keys of all containers around it contain its key; it is sorted once.
			key = packed{Text(key), id, key.hasNaN(), true}
		}
		known, again := seen[id]
		if p.peek() == ':' {
			if set != nil {
				return nil, p.fail("a dict item in a set")
			}
			p.pos++
			value, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			if again {
				dict[known].Value = value
			} else {
				seen[id] = len(dict)
				dict = append(dict, Entry{key, value})
			}
		} else {
			if dict != nil {
				return nil, p.fail("a set element in a dict")
			}
			if !again {
				seen[id] = len(set)
				set = append(set, key)
			}
		}
		if !p.take(",") && p.peek() != '}' {
			return nil, p.fail("want a comma or '}'")
		}
	}
	p.pos++
	if dict != nil {
		return dict, nil
	}
	return set, nil
}

func (p *parser) number() (Value, error) {
	start := p.pos
	negative := p.text[p.pos] == '-'
	if negative {
		p.pos++
		switch {
		case strings.HasPrefix(p.text[p.pos:], "inf"):
			p.pos += len("inf")
			return Float(math.Inf(-1)), nil
		case strings.HasPrefix(p.text[p.pos:], "nan"):
			p.pos += len("nan")
			return Float(math.NaN()), nil
		}
	}
	if strings.HasPrefix(p.text[p.pos:], "0x") {
		return p.hexadecimal(negative)
	}
	digits := p.pos
	for p.pos < len(p.text) && strings.IndexByte("0123456789.eE+-", p.text[p.pos]) >= 0 {
		if c := p.text[p.pos]; (c == '+' || c == '-') && p.text[p.pos-1]|0x20 != 'e' {
			break
		}
		p.pos++
	}
	word := p.text[start:p.pos]
	if strings.ContainsAny(word, ".eE") {
		f, err := strconv.ParseFloat(word, 64)
		// Python reads a number out of range as infinity, too.
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, p.fail("%.20q is not a number", word)
		}
		return Float(f), nil
	}
	if p.pos-digits > 1 && p.text[digits] == '0' {
		return nil, p.fail("a leading zero")
	}
	if p.pos-digits > MaxIntDigits {
		return nil, p.fail("a number of over %d digits", MaxIntDigits)
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return NewInt(n), nil
	}
	n, ok := new(big.Int).SetString(word, 10)
	if !ok {
		return nil, p.fail("%.20q is not a number", word)
	}
	return BigInt(n), nil
}

// hexadecimal reads a whole number from its 0x on.
func (p *parser) hexadecimal(negative bool) (Value, error) {
	p.pos += len("0x")
	digits := p.pos
	for p.pos < len(p.text) && strings.IndexByte("0123456789abcdefABCDEF", p.text[p.pos]) >= 0 {
		p.pos++
	}
	if p.pos-digits > MaxIntDigits {
		return nil, p.fail("a number of over %d digits", MaxIntDigits)
	}
	n, ok := new(big.Int).SetString(p.text[digits:p.pos], 16)
	if !ok {
		return nil, p.fail("no hexadecimal digit after 0x")
	}
	if negative {
		n.Neg(n)
	}
	return BigInt(n), nil
}

// quoted reads a string from its opening quote on.
func (p *parser) quoted(raw bool) (string, error) {
	if p.pos == len(p.text) || p.text[p.pos] != '\'' && p.text[p.pos] != '"' {
		return "", p.fail("want a quote")
	}
	quote := p.text[p.pos]
	p.pos++
	var out []byte
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		switch {
		case c == quote:
			p.pos++
			return string(out), nil
		case c == '\n':
			return "", p.fail("a line break in a string")
		case c == '\\':
			var err error
			if out, err = p.escape(out, raw); err != nil {
				return "", err
			}
		case c < utf8.RuneSelf:
			out = append(out, c)
			p.pos++
		default:
			r, size := utf8.DecodeRuneInString(p.text[p.pos:])
			if raw || r == utf8.RuneError && size == 1 {
				return "", p.fail("a byte outside ASCII or UTF-8")
			}
			out = append(out, p.text[p.pos:p.pos+size]...)
			p.pos += size
		}
	}
	return "", p.fail("a string that does not end")
}

var plainEscapes = map[byte]byte{'\\': '\\', '\'': '\'', '"': '"', 'n': '\n', 'r': '\r', 't': '\t'}

func (p *parser) escape(out []byte, raw bool) ([]byte, error) {
	if p.pos+1 >= len(p.text) {
		return nil, p.fail("a string that does not end")
	}
	c := p.text[p.pos+1]
	if plain, ok := plainEscapes[c]; ok {
		p.pos += 2
		return append(out, plain), nil
	}
	width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if width == 0 || raw && c != 'x' || p.pos+2+width > len(p.text) {
		return nil, p.fail("an unknown escape")
	}
	code, err := strconv.ParseUint(p.text[p.pos+2:p.pos+2+width], 16, 32)
	if err != nil || code > utf8.MaxRune {
		return nil, p.fail("an escape that is no character")
	}
	p.pos += 2 + width
	switch {
	case raw:
		return append(out, byte(code)), nil
	case code >= 0xd800 && code <= 0xdfff:
		return appendSurrogate(out, rune(code)), nil
	}
	return utf8.AppendRune(out, rune(code)), nil
}
