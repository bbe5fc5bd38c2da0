package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

// An interrupted export leaves no file.
func TestExportedFileIsWholeOrAbsent(t *testing.T) {
	t.Parallel()
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.jsonl")
	if _, err := execute(t, "replay", "export", run, "--out", path); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(path); err != nil || bytes.Count(raw, []byte("\n")) != 31 {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	again := path + ".again"
	err := writeFile(again, func(io.Writer) error { return canceled.Err() })
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(again + "*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An export does not replace a directory, and the error names the path.
func TestExportToWhatIsNoFile(t *testing.T) {
	t.Parallel()
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, tt := range []struct {
		path string
		want error
	}{{folder, syscall.EISDIR}, {filepath.Join(folder, "none", "x"), os.ErrNotExist}} {
		_, err := execute(t, "replay", "export", run, "--out", tt.path)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "write "+tt.path+":") {
			t.Errorf("--out %s: %v", tt.path, err)
		}
	}
	if left, _ := filepath.Glob(folder + "*/*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left, _ := filepath.Glob(folder + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
