package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/schemas"
)

// The schema files match the Go types; go generate ./events rewrites them.
func TestSchemasAreUpToDate(t *testing.T) {
	all := map[events.Type][]byte{}
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
		all[eventType] = want
	}
	want, err := python(all)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join("../../..", pythonTypes))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(have)); diff != "" {
		t.Errorf("%s: run `go generate ./events` (-types +file):\n%s", pythonTypes, diff)
	}
	parse := exec.Command("python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())")
	parse.Stdin = bytes.NewReader(want)
	if out, err := parse.CombinedOutput(); err != nil {
		t.Errorf("%s is no Python: %v\n%s", pythonTypes, err, out)
	}
}
