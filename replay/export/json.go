package export

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"math"
	"reflect"
	"strings"

	"codea1/events"
)

// Payload returns a payload in JSON form. Its fields have the names of the wire
// format. Packed token IDs and log-probs become lists of numbers, rows of bits
// base64; NaN and infinities become null.
func Payload(p events.Payload) map[string]any {
	return jsonable(reflect.ValueOf(p).Elem()).(map[string]any)
}

func jsonable(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return jsonable(v.Elem())
	case reflect.Struct:
		fields := make(map[string]any, v.NumField())
		for i := range v.NumField() {
			name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("msgpack"), ",")
			if name == "" || option == "omitempty" && v.Field(i).IsZero() {
				continue
			}
			fields[name] = jsonable(v.Field(i))
		}
		return fields
	case reflect.Slice:
		if row, ok := v.Interface().(events.Bits); ok {
			return base64.StdEncoding.EncodeToString(row)
		}
		items := make([]any, v.Len())
		for i := range items {
			items[i] = jsonable(v.Index(i))
		}
		return items
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
	}
	return v.Interface()
}

// NewLines returns an encoder that writes one JSON object per line.
func NewLines(out io.Writer) *json.Encoder {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder
}
