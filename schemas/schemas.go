package schemas

import (
	"embed"
	"errors"
	"fmt"
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
