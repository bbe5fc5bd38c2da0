package events

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// madeUp is the payload of an event type that is at version 3. Version 1 calls
// the number "old", version 2 calls it "n", version 3 counts from 1.
type madeUp struct {
	N int `msgpack:"n"`
}

const typeMadeUp Type = "made.up"

func (*madeUp) EventType() Type { return typeMadeUp }
func (*madeUp) Validate() error { return nil }

func TestUpcast(t *testing.T) {
	entry := registry[TypeStageHeartbeat]
	entry.version, entry.make = 3, func() Payload { return new(madeUp) }
	registry[typeMadeUp] = entry
	defer func() { delete(registry, typeMadeUp); delete(upcasters, typeMadeUp) }()

	raw, err := marshal(map[string]any{"old": 40})
	if err != nil {
		t.Fatal(err)
	}
	written := messageOf(typeMadeUp, raw)
	written.SchemaVersion = 1
	if _, err := written.Decode(); err == nil || !strings.Contains(err.Error(), "no upcaster from version 1") {
		t.Errorf("without upcasters: %v", err)
	}
	upcasters[typeMadeUp] = map[int]upcaster{
		1: func(v map[string]any) (map[string]any, error) { return map[string]any{"n": v["old"]}, nil },
		2: func(v map[string]any) (map[string]any, error) {
			n, ok := v["n"].(int8)
			if !ok {
				return nil, ErrMalformed
			}
			return map[string]any{"n": n + 1}, nil
		},
	}
	e, err := written.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if n := e.Payload.(*madeUp).N; n != 41 || e.SchemaVersion != 3 {
		t.Errorf("n is %d at version %d, want 41 at version 3", n, e.SchemaVersion)
	}
	if e.Hash() != hashOf(raw) {
		t.Errorf("hash %s, want that of the bytes as they were written", e.Hash())
	}
	again, err := written.Again()
	if err != nil {
		t.Fatal(err)
	}
	sent, err := EncodeOnce(again)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(written, sent); d != "" {
		t.Errorf("published again (-written +sent):\n%s", d)
	}
	if written.Data, err = marshal(map[string]any{"old": "text"}); err != nil {
		t.Fatal(err)
	}
	if _, err := written.Decode(); !errors.Is(err, ErrMalformed) {
		t.Errorf("an upcaster that fails: %v", err)
	}
	written.SchemaVersion = 4
	if _, err := written.Decode(); !errors.Is(err, ErrNewerSchema) {
		t.Errorf("a newer schema: %v", err)
	}
}
