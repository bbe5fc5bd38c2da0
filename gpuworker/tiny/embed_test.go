package tiny

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
)

func TestShippedCheckpointsOpen(t *testing.T) {
	entries, err := shipped.ReadDir("checkpoints")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		fsys, err := Checkpoint(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		e, err := OpenFS(fsys)
		if err != nil {
			t.Fatalf("%s: %v", entry.Name(), err)
		}
		dir := t.TempDir()
		if err := WriteCheckpoint(fsys, dir); err != nil {
			t.Fatal(err)
		}
		copied, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(e.current.net.Weights.Data, copied.current.net.Weights.Data) {
			t.Errorf("%s: the copy has other weights", entry.Name())
		}
	}
	if _, err := Checkpoint("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
