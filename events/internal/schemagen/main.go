// Command schemagen writes the JSON Schema of every event type, in its current
// version, from the Go types of package events and their comments, and Python types
// from the schemas. Run it in
// the repository root with "go run ./events/internal/schemagen".
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/invopop/jsonschema"

	"codea1/events"
	"codea1/schemas"
)

func main() {
	root := flag.String("root", ".", "repository root")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	all := map[events.Type][]byte{}
	for _, t := range events.Types() {
		text, err := generate(root, t)
		if err != nil {
			return err
		}
		name := filepath.Join(root, "schemas", schemas.FileName(string(t), events.CurrentVersion(t)))
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
		all[t] = text
	}
	text, err := python(all)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, pythonTypes), text, 0o644)
}

// generate returns the schema of one event type. Comments are read from the
// source under root.
func generate(root string, t events.Type) ([]byte, error) {
	r := jsonschema.Reflector{
		FieldNameTag: "msgpack",
		Anonymous:    true,
		// Readers must accept the fields that a later version adds.
		AllowAdditionalProperties: true,
		Mapper:                    packed,
	}
	// The comment map's keys are paths below the base, as the reflector asks for them.
	old, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(root); err != nil {
		return nil, err
	}
	err = r.AddGoComments("codea1", "./events")
	if back := os.Chdir(old); err == nil {
		err = back
	}
	if err != nil {
		return nil, fmt.Errorf("%s: read comments: %w", t, err)
	}
	s := r.Reflect(events.WireForm(t))
	s.Title = fmt.Sprintf("%s version %d", t, events.CurrentVersion(t))
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	return append(text, '\n'), nil
}

// packed describes the packed types as they are on the wire.
func packed(t reflect.Type) *jsonschema.Schema {
	var what string
	switch t {
	case reflect.TypeFor[events.Int32s]():
		what = "msgpack bin: int32, four bytes each, in planes: the lowest byte of every value, then the second of every value, the third, the highest"
	case reflect.TypeFor[events.Float32s]():
		what = "msgpack bin: little-endian IEEE 754 float32, four bytes each"
	case reflect.TypeFor[events.Bits]():
		what = "msgpack bin: bit i is bit i%8 of byte i/8, the lowest first"
	default:
		return nil
	}
	return &jsonschema.Schema{Type: "string", ContentEncoding: "base64", Description: what}
}
