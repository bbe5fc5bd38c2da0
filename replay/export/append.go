package export

import (
	"cmp"
	"encoding/base64"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"codea1/events"
)

// AppendPayload appends a payload as JSON: the object that Payload returns, with
// sorted names. Characters that a terminal obeys or does not show are escaped.
func AppendPayload(b []byte, p events.Payload) []byte {
	return appendValue(b, reflect.ValueOf(p).Elem())
}

// jsonField is a field of a struct in JSON.
type jsonField struct {
	index     int
	key       string // the name, quoted, with a colon
	omitEmpty bool
}

var jsonFields sync.Map // reflect.Type to []jsonField

func fieldsOf(t reflect.Type) []jsonField {
	if known, ok := jsonFields.Load(t); ok {
		return known.([]jsonField)
	}
	var fields []jsonField
	for i := range t.NumField() {
		if name, option, _ := strings.Cut(t.Field(i).Tag.Get("msgpack"), ","); name != "" {
			fields = append(fields, jsonField{i, strconv.Quote(name) + ":", option == "omitempty"})
		}
	}
	slices.SortFunc(fields, func(x, y jsonField) int { return cmp.Compare(x.key, y.key) })
	jsonFields.Store(t, fields)
	return fields
}

func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "null"...)
		}
		return appendValue(b, v.Elem())
	case reflect.Struct:
		b = append(b, '{')
		from := len(b)
		for _, f := range fieldsOf(v.Type()) {
			value := v.Field(f.index)
			if f.omitEmpty && value.IsZero() {
				continue
			}
			if len(b) > from {
				b = append(b, ',')
			}
			b = appendValue(append(b, f.key...), value)
		}
		return append(b, '}')
	case reflect.Slice:
		switch list := v.Interface().(type) {
		case events.Int32s:
			return appendList(b, len(list), func(b []byte, i int) []byte { return strconv.AppendInt(b, int64(list[i]), 10) })
		case events.Bits:
			return append(base64.StdEncoding.AppendEncode(append(b, '"'), list), '"')
		case events.Float32s:
			return appendList(b, len(list), func(b []byte, i int) []byte { return appendFloat(b, float64(list[i]), 32) })
		}
		return appendList(b, v.Len(), func(b []byte, i int) []byte { return appendValue(b, v.Index(i)) })
	case reflect.String:
		return AppendString(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Float32, reflect.Float64:
		return appendFloat(b, v.Float(), v.Type().Bits())
	case reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10)
	}
	return strconv.AppendInt(b, v.Int(), 10)
}

func appendList(b []byte, n int, item func(b []byte, i int) []byte) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = item(b, i)
	}
	return append(b, ']')
}

// appendFloat appends a number as encoding/json does; null for NaN and infinities.
func appendFloat(b []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(b, f, 'e', -1, bits)
	}
	return strconv.AppendFloat(b, f, 'f', -1, bits)
}

// AppendString appends a text as JSON. Bytes that are not UTF-8 become U+FFFD.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c <= '~' && c != '"' && c != '\\' {
			b = append(b, c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', c)
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case strconv.IsPrint(r):
			b = utf8.AppendRune(b, r)
		default:
			units := [2]rune{r}
			n := 1
			if r > 0xffff {
				units, n = [2]rune{0xd800 + (r-0x10000)>>10, 0xdc00 + (r-0x10000)&0x3ff}, 2
			}
			for _, u := range units[:n] {
				b = append(b, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
			}
		}
	}
	return append(b, '"')
}
