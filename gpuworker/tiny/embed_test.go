package tiny

import (
	"errors"
	"io/fs"
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
		if e.Parameters() == 0 {
			t.Errorf("%s has no parameters", entry.Name())
		}
	}
	if _, err := Checkpoint("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
