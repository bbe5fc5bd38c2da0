package published

import (
	"encoding/binary"
	"errors"
	"strings"
)

// sameOutput reports whether two outputs are equal by LiveCodeBench's rule: without
// white space around the text and around each line, they have the same lines, where two
// lines are also the same if both are numbers in decimal with equal values.
func sameOutput(got, want string) bool {
	gots, wants := strings.Split(strings.TrimSpace(got), "\n"), strings.Split(strings.TrimSpace(want), "\n")
	if len(gots) != len(wants) {
		return false
	}
	for i := range gots {
		if !sameLine(strings.TrimSpace(gots[i]), strings.TrimSpace(wants[i])) {
			return false
		}
	}
	return true
}

func sameLine(got, want string) bool {
	if got == want {
		return true
	}
	gots, wants := strings.Fields(got), strings.Fields(want)
	if len(gots) != len(wants) {
		return false
	}
	for i := range gots {
		a, ok := readDecimal(gots[i])
		b, okay := readDecimal(wants[i])
		if !ok || !okay || a != b {
			return false
		}
	}
	return true
}

// decimal is a number 0.digits * 10**exponent. Equal numbers are equal as structs. A
// program chooses the exponent, so no number is written out.
type decimal struct {
	negative bool
	digits   string // without zeros at either end; empty: 0
	exponent int64
}

// maxExponentDigits bounds the text of an exponent.
const maxExponentDigits = 15

func readDecimal(text string) (d decimal, ok bool) {
	text, d.negative = strings.CutPrefix(text, "-")
	if !d.negative {
		text = strings.TrimPrefix(text, "+")
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		if d.exponent, ok = readExponent(text[at+1:]); !ok {
			return d, false
		}
		text = text[:at]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return d, false
	}
	d.exponent += int64(len(whole))
	d.digits = strings.TrimLeft(digits, "0")
	d.exponent -= int64(len(digits) - len(d.digits))
	if d.digits = strings.TrimRight(d.digits, "0"); d.digits == "" {
		return decimal{}, true // 0 and -0
	}
	return d, true
}

func readExponent(text string) (exponent int64, ok bool) {
	text, negative := strings.CutPrefix(text, "-")
	if !negative {
		text = strings.TrimPrefix(text, "+")
	}
	if text == "" || len(text) > maxExponentDigits {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		exponent = 10*exponent + int64(text[i]-'0')
	}
	if negative {
		exponent = -exponent
	}
	return exponent, true
}

var errPickle = errors.New("want a pickled text and nothing else")

// unpickleText returns the text of a pickle with one text. A pickle is a program;
// nothing of another one runs.
func unpickleText(data []byte) ([]byte, error) {
	if len(data) < 2 || data[0] != 0x80 { // PROTO
		return nil, errPickle
	}
	data = data[2:]
	if len(data) > 9 && data[0] == 0x95 { // FRAME
		data = data[9:]
	}
	var size uint64
	switch {
	case len(data) > 2 && data[0] == 0x8c: // SHORT_BINUNICODE
		size, data = uint64(data[1]), data[2:]
	case len(data) > 5 && data[0] == 'X': // BINUNICODE
		size, data = uint64(binary.LittleEndian.Uint32(data[1:])), data[5:]
	case len(data) > 9 && data[0] == 0x8d: // BINUNICODE8
		size, data = binary.LittleEndian.Uint64(data[1:]), data[9:]
	default:
		return nil, errPickle
	}
	if size >= uint64(len(data)) { // the end follows
		return nil, errPickle
	}
	text, rest := data[:size], data[size:]
	switch {
	case string(rest) == ".", string(rest) == "\x94.": // MEMOIZE
	case len(rest) == 3 && rest[0] == 'q' && rest[2] == '.', len(rest) == 6 && rest[0] == 'r' && rest[5] == '.': // BINPUT
	default:
		return nil, errPickle
	}
	return text, nil
}
