package torch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events"
)

// A name on the Hugging Face hub is found in the cache of the machine without a network.
// The files of the copy are no links into the cache.
func TestNamesOnTheHub(t *testing.T) {
	interpreter := python(t)
	cache := t.TempDir()
	t.Setenv("HF_HOME", cache)
	t.Setenv("HF_HUB_OFFLINE", "1")
	model := filepath.Join(cache, "hub", "models--Owner--Coder-1.5B")
	for _, dir := range []string{"blobs", "refs", filepath.Join("snapshots", "abc")} {
		if err := os.MkdirAll(filepath.Join(model, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(model, "refs", "main"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	source := small(t)
	for _, name := range []string{"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(model, "blobs", "blob-"+name), content, 0o600)
		}
		if err == nil {
			err = os.Symlink(filepath.Join("..", "..", "blobs", "blob-"+name), filepath.Join(model, "snapshots", "abc", name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	start := filepath.Join(t.TempDir(), "start")
	if err := CopyStart(t.Context(), interpreter, events.RoleCode, "Owner/Coder-1.5B", start); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "model.safetensors", "tokenizer.json"} {
		info, err := os.Lstat(filepath.Join(start, name))
		if err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	err := CopyStart(t.Context(), interpreter, events.RoleTest, "Owner/Other", none)
	if err == nil || !strings.Contains(err.Error(), "--test-model: ") || !strings.Contains(err.Error(), "Owner/Other cannot be had from the Hugging Face hub") {
		t.Errorf("a name that the cache lacks: %v", err)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("there is a checkpoint of a model that does not exist")
	}
}
