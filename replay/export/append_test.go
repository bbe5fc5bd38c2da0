package export

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codea1/events"
	"codea1/events/eventstest"
)

// AppendPayload writes the object of Payload, for every type and every text.
func TestAppendPayload(t *testing.T) {
	for _, typ := range events.Types() {
		check(t, events.NewPayload(typ))
		full := events.NewPayload(typ)
		fill(reflect.ValueOf(full).Elem())
		check(t, full)
	}
	for _, e := range eventstest.Chain("r", 1, 2) {
		check(t, e.Payload)
	}
	check(t, &events.RunStarted{Origin: &events.Origin{Run: "o", Events: math.MaxUint64}})
	floats := []float64{0, math.Copysign(0, -1), 1e-7, -1e-9, 123456789, 1e20, 1e21, -2.5e300, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1)}
	for _, f := range floats {
		check(t, &events.PolicyUpdated{Metrics: events.PolicyMetrics{Loss: f}})
		check(t, &events.CodeSampled{Answers: []events.Completion{{LogProbs: events.Float32s{float32(f)}}}})
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, &events.GroupDropped{Stage: rapid.String().Draw(t, "text"), Detail: string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))})
	})
}

// fill sets every field of a payload that is a list, a text or a struct.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.String:
		v.SetString("text")
	}
}

func check(t interface {
	Helper()
	Errorf(string, ...any)
}, p events.Payload) {
	t.Helper()
	var plain strings.Builder
	if err := NewLines(&plain).Encode(Payload(p)); err != nil {
		t.Errorf("%v", err)
	}
	line := AppendPayload(nil, p)
	var have, want any
	if err := json.Unmarshal(line, &have); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	if err := json.Unmarshal([]byte(plain.String()), &want); err != nil {
		t.Errorf("%v", err)
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("%s (-want +have):\n%s", p.EventType(), d)
	}
	for _, r := range string(line) {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			t.Errorf("%s: a terminal obeys %U", line, r)
		}
	}
}
