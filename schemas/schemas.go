package schemas

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed *.json
var files embed.FS

// ErrNoSchema is returned for an event type or version that has no schema.
var ErrNoSchema = errors.New("no schema")

// FileName returns the name of a schema's file.
func FileName(eventType string, version int) string {
	return fmt.Sprintf("%s.v%d.json", eventType, version)
}

// Read returns the JSON text of the schema of an event type and version.
func Read(eventType string, version int) ([]byte, error) {
	b, err := files.ReadFile(FileName(eventType, version))
	if err != nil {
		return nil, fmt.Errorf("%w of %s version %d", ErrNoSchema, eventType, version)
	}
	return b, nil
}

var compiled sync.Map // file name -> *jsonschema.Schema

// Validate checks a payload in generic form against the schema of its type and
// version. The error names every field that breaks it.
func Validate(eventType string, version int, payload map[string]any) error {
	schema, err := compile(eventType, version)
	if err != nil {
		return err
	}
	text, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("%s version %d: %w", eventType, version, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return fmt.Errorf("%s version %d: %w", eventType, version, err)
	}
	return nil
}

// compile returns the compiled schema of an event type and version.
func compile(eventType string, version int) (*jsonschema.Schema, error) {
	name := FileName(eventType, version)
	if s, ok := compiled.Load(name); ok {
		return s.(*jsonschema.Schema), nil
	}
	text, err := Read(eventType, version)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	c := jsonschema.NewCompiler()
	// With a made-up URL the compiler does not look for files.
	url := "mem:///" + strings.ReplaceAll(name, " ", "")
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	s, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	compiled.Store(name, s)
	return s, nil
}
