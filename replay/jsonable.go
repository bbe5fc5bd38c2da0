package replay

import (
	"encoding/json"
	"io"
	"math"
	"reflect"
	"strings"
	"time"

	"codea1/events"
)

// eventJSON is an event as programs read it: the envelope, and the payload
// under the names it has on the wire.
type eventJSON struct {
	Seq           uint64         `json:"seq"`
	ID            string         `json:"id"`
	Type          events.Type    `json:"type"`
	SchemaVersion int            `json:"schema_version"`
	Run           string         `json:"run"`
	Group         string         `json:"group"`
	Source        string         `json:"source"`
	Time          time.Time      `json:"time"`
	CausationID   string         `json:"causation_id,omitempty"`
	CausationHash string         `json:"causation_hash,omitempty"`
	PayloadHash   string         `json:"payload_hash"`
	Chain         string         `json:"chain"`
	Payload       map[string]any `json:"payload"`
}

// toJSON decodes a record into its JSON form.
func toJSON(r *Record) (*eventJSON, error) {
	e, err := r.Decode()
	if err != nil {
		return nil, err
	}
	m := &r.Message
	return &eventJSON{
		Seq: r.Seq, ID: m.ID, Type: m.Type, SchemaVersion: e.SchemaVersion, Run: m.Run, Group: m.Group, Source: m.Source, Time: m.Time,
		CausationID: m.CausationID, CausationHash: m.CausationHash, PayloadHash: r.PayloadHash.String(), Chain: r.Chain.String(),
		Payload: payloadJSON(e.Payload),
	}, nil
}

// payloadJSON names fields as they are named on the wire. Packed token ids and
// log-probs become lists of numbers; what is no number in JSON becomes null.
func payloadJSON(p events.Payload) map[string]any {
	return jsonable(reflect.ValueOf(p).Elem()).(map[string]any)
}

func jsonable(v reflect.Value) any {
	switch v.Kind() {
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

// newJSONLines returns an encoder that writes one object per line.
func newJSONLines(out io.Writer) *json.Encoder {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder
}
