package checkpoint_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events"
	"codea1/gpuworker/checkpoint"
)

// SHA256SUMS has the sum of every file that the engine wrote, in any number of
// directories, and each changed or missing file is named when the version is read.
func TestSumsOfAllFiles(t *testing.T) {
	t.Parallel()
	folder := checkpoint.Folder{Path: filepath.Join(t.TempDir(), "code"), Run: "r1", Role: events.RoleCode}
	record := func(version int) *checkpoint.Record {
		return &checkpoint.Record{Format: checkpoint.Format, Run: "r1", Role: events.RoleCode, Version: version, Step: version}
	}
	files := []string{"model.safetensors", "optimizer.safetensors", "a/b/shard-1", "a/shard-2", "config.json"}
	first := record(1)
	err := folder.Write(t.Context(), first, func(dir string) error {
		err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755)
		for _, name := range files {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte("content of "+name), 0o644))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(folder.Dir(1), "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte("content of "+name)), name); !strings.Contains(string(list), line) {
			t.Errorf("no line %q in\n%s", line, list)
		}
	}
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("content of model.safetensors"))); first.WeightsSHA256 != want {
		t.Errorf("weights %s, want %s", first.WeightsSHA256, want)
	}
	for _, name := range append(files, "trainer.json") {
		path := filepath.Join(folder.Dir(1), name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for what, damage := range map[string]func() error{
			"has SHA-256":    func() error { return os.WriteFile(path, append(content, '!'), 0o644) },
			"cannot be read": func() error { return os.Remove(path) },
		} {
			err := damage()
			if err != nil {
				t.Fatal(err)
			}
			var damaged *checkpoint.Error
			if _, err = folder.Read(t.Context(), 1); !errors.As(err, &damaged) || damaged.File != name || !strings.Contains(damaged.Reason, what) {
				t.Errorf("%s: %v, want %q", name, err, what)
			}
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, err := folder.Read(t.Context(), 1); err != nil || got.WeightsSHA256 != first.WeightsSHA256 {
		t.Errorf("%+v, %v", got, err)
	}

	// A version without weights and one of a stopped trainer leave nothing.
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for ctx, want := range map[context.Context]error{t.Context(): fs.ErrNotExist, stopped: context.Canceled} {
		err := folder.Write(ctx, record(2), func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "config.json"), nil, 0o644)
		})
		if left, _ := filepath.Glob(filepath.Join(folder.Path, "*2*")); !errors.Is(err, want) || len(left) > 0 {
			t.Errorf("%v, want %v; left over: %v", err, want, left)
		}
	}
}
