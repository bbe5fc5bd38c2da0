package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"codea1/schemas"
)

// validate checks a payload in generic form against the schema of its type and
// version. The error names every field that breaks it.
func validate(t *testing.T, eventType Type, version int, payload map[string]any) error {
	t.Helper()
	text, err := schemas.Read(string(eventType), version)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	// With a made-up URL the compiler does not look for files.
	url := "mem:///" + schemas.FileName(string(eventType), version)
	if err := c.AddResource(url, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(url)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(payload); err != nil {
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
