package tiny

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codea1/events"
	"codea1/gpuworker/tiny/safetensors"
)

// split replaces the weights of a checkpoint by two shards with an index.
func split(t *testing.T, dir string, e *Engine) {
	t.Helper()
	index := map[string]map[string]string{"weight_map": {}}
	shards := map[string][]safetensors.Values{}
	for i, v := range appendValues(nil, "", e.current.net.Weights) {
		name := []string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}[i%2]
		index["weight_map"][v.Name] = name
		shards[name] = append(shards[name], v)
	}
	for name, values := range shards {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(safetensors.Write(f, values, safetensors.F32, nil), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(index)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, safetensors.IndexFile), text, 0o600), os.Remove(filepath.Join(dir, weightsFile))); err != nil {
		t.Fatal(err)
	}
}

// A run starts from a model in shards, and from one of symbolic links. Its
// copy is one file with the same weights.
func TestCopyStart(t *testing.T) {
	e := newTestEngine(t, shape, 1)
	shards := save(t, e)
	split(t, shards, e)
	blobs, links := save(t, e), t.TempDir()
	entries, err := os.ReadDir(blobs)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.Symlink(filepath.Join(blobs, entry.Name()), filepath.Join(links, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for what, from := range map[string]string{"shards": shards, "links": links} {
		to := filepath.Join(t.TempDir(), "start")
		if err := CopyStart(t.Context(), events.RoleCode, from, to); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		again, err := Open(to)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !slices.Equal(e.current.net.Weights.Data, again.current.net.Weights.Data) {
			t.Errorf("%s: other weights", what)
		}
		if info, err := os.Lstat(filepath.Join(to, weightsFile)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: the weights are not one file: %v", what, err)
		}
	}
	if err := os.Remove(filepath.Join(shards, "model-00002-of-00002.safetensors")); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "start")
	if err := CopyStart(t.Context(), events.RoleTest, shards, to); err == nil || !strings.Contains(err.Error(), "--test-model: ") ||
		!strings.Contains(err.Error(), "model-00002-of-00002.safetensors") {
		t.Errorf("a shard is missing: %v", err)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("a copy of a bad checkpoint")
	}
}

// Each file of a checkpoint may be replaced by a named pipe, a directory or a device: it
// is refused by name and not opened.
func TestCheckpointFilesAreRegular(t *testing.T) {
	e := newTestEngine(t, shape, 1)
	if _, err := e.Update(t.Context(), rollouts(t, e), ppo); err != nil {
		t.Fatal(err)
	}
	whole := save(t, e)
	entries, err := os.ReadDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		for what, replace := range map[string]func(path string) error{
			"a named pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"a directory":  func(path string) error { return os.Mkdir(path, 0o700) },
			"a device":     func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, entry.Name())
			if err := errors.Join(os.Remove(path), replace(path)); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), dir+": ") || !strings.Contains(err.Error(), entry.Name()+" is "+what) {
				t.Errorf("%s: %v", entry.Name(), err)
			}
		}
	}
}
