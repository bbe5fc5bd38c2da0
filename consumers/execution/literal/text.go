package literal

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns v as a Python expression: the output of repr, with two differences.
// The elements of sets are sorted, so that one value has one text, and infinities
// and NaN are written in a form that Python reads back.
func Text(v Value) string {
	if p, ok := v.(packed); ok {
		return p.text
	}
	return string(v.appendText(nil))
}

func (None) appendText(dst []byte) []byte { return append(dst, "None"...) }

func (b Bool) appendText(dst []byte) []byte {
	if b {
		return append(dst, "True"...)
	}
	return append(dst, "False"...)
}

// decimalBits is the largest size of a number that is written in decimal: Python
// reads and writes at most 4,300 decimal digits, but any number in hexadecimal.
const decimalBits = 14_000

func (i *Int) appendText(dst []byte) []byte {
	if i.big.IsInt64() { // five times as fast
		return strconv.AppendInt(dst, i.big.Int64(), 10)
	}
	if i.big.BitLen() <= decimalBits {
		return i.big.Append(dst, 10)
	}
	if i.big.Sign() < 0 {
		dst = append(dst, '-')
	}
	return new(big.Int).Abs(&i.big).Append(append(dst, "0x"...), 16)
}

// appendText follows repr(float): shortest digits that read back the same,
// scientific below 1e-4 and from 1e16.
func (f Float) appendText(dst []byte) []byte {
	x := float64(f)
	switch {
	case math.IsNaN(x):
		return append(dst, "float('nan')"...)
	case math.IsInf(x, 1):
		return append(dst, "float('inf')"...)
	case math.IsInf(x, -1):
		return append(dst, "float('-inf')"...)
	}
	if size := math.Abs(x); size != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.AppendFloat(dst, x, 'e', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, x, 'f', -1, 64)
	if !bytes.ContainsRune(dst[start:], '.') {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendText writes two parts: the sum that repr writes loses the sign of a zero.
func (c Complex) appendText(dst []byte) []byte {
	dst = Float(real(c)).appendText(append(dst, "complex("...))
	dst = Float(imag(c)).appendText(append(dst, ", "...))
	return append(dst, ')')
}

func (s Str) appendText(dst []byte) []byte {
	quote := quoteFor(string(s))
	dst = append(dst, quote)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(string(s[i:]))
		switch {
		case r == utf8.RuneError && size == 1:
			if code, ok := surrogateAt(string(s[i:])); ok {
				dst = fmt.Appendf(dst, `\u%04x`, code)
				size = 3
			} else {
				dst = utf8.AppendRune(dst, utf8.RuneError) // no Str of Parse holds such a byte
			}
		case r < utf8.RuneSelf:
			dst = appendASCII(dst, byte(r), quote)
		case unicode.IsPrint(r):
			dst = append(dst, s[i:i+size]...)
		case r <= 0xff:
			dst = fmt.Appendf(dst, `\x%02x`, r)
		case r <= 0xffff:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = fmt.Appendf(dst, `\U%08x`, r)
		}
		i += size
	}
	return append(dst, quote)
}

func (b Bytes) appendText(dst []byte) []byte {
	quote := quoteFor(string(b))
	dst = append(dst, 'b', quote)
	for i := range len(b) {
		if b[i] < utf8.RuneSelf {
			dst = appendASCII(dst, b[i], quote)
		} else {
			dst = fmt.Appendf(dst, `\x%02x`, b[i])
		}
	}
	return append(dst, quote)
}

// quoteFor chooses like repr: single quotes, unless only they need escapes.
func quoteFor(s string) byte {
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return '"'
	}
	return '\''
}

func appendASCII(dst []byte, c, quote byte) []byte {
	switch {
	case c == quote || c == '\\':
		return append(dst, '\\', c)
	case c == '\n':
		return append(dst, `\n`...)
	case c == '\r':
		return append(dst, `\r`...)
	case c == '\t':
		return append(dst, `\t`...)
	case c < ' ' || c == 0x7f:
		return fmt.Appendf(dst, `\x%02x`, c)
	}
	return append(dst, c)
}

// surrogateAt decodes the three bytes of a lone surrogate.
func surrogateAt(s string) (code rune, ok bool) {
	if len(s) < 3 || s[0] != 0xed || s[1]&0xe0 != 0xa0 || s[2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), true
}

func appendSurrogate(dst []byte, code rune) []byte {
	return append(dst, 0xed, 0x80|byte(code>>6)&0x3f, 0x80|byte(code)&0x3f)
}

func (l List) appendText(dst []byte) []byte {
	return append(appendItems(append(dst, '['), l), ']')
}

func (t Tuple) appendText(dst []byte) []byte {
	dst = appendItems(append(dst, '('), t)
	if len(t) == 1 {
		dst = append(dst, ',')
	}
	return append(dst, ')')
}

func (s Set) appendText(dst []byte) []byte {
	if len(s) == 0 {
		return append(dst, "set()"...)
	}
	texts := make([]string, len(s))
	for i, v := range s {
		texts[i] = Text(v)
	}
	slices.Sort(texts)
	dst = append(dst, '{')
	dst = append(dst, strings.Join(texts, ", ")...)
	return append(dst, '}')
}

func (s FrozenSet) appendText(dst []byte) []byte {
	dst = append(dst, "frozenset("...)
	if len(s) > 0 {
		dst = Set(s).appendText(dst)
	}
	return append(dst, ')')
}

func (d Dict) appendText(dst []byte) []byte {
	dst = append(dst, '{')
	for i, e := range d {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = e.Key.appendText(dst)
		dst = append(dst, ": "...)
		dst = e.Value.appendText(dst)
	}
	return append(dst, '}')
}

func appendItems(dst []byte, items []Value) []byte {
	for i, v := range items {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = v.appendText(dst)
	}
	return dst
}
