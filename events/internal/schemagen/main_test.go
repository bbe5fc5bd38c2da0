package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/schemas"
)

// The schema files match the Go types; go generate ./events rewrites them.
func TestSchemasAreUpToDate(t *testing.T) {
	for _, eventType := range events.Types() {
		want, err := generate("../../..", eventType)
		if err != nil {
			t.Fatal(err)
		}
		have, err := schemas.Read(string(eventType), events.CurrentVersion(eventType))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(have)); diff != "" {
			t.Errorf("%s: run `go generate ./events` (-types +file):\n%s", eventType, diff)
		}
	}
}
