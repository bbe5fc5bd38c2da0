package checkpoint_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

// The sums that an engine left stand where the sizes fit, and the others are computed.
// A wrong sum is noticed when the version is read.
func TestSumsOfAnEngine(t *testing.T) {
	t.Parallel()
	folder := checkpoint.Folder{Path: filepath.Join(t.TempDir(), "code"), Run: "r1", Role: events.RoleCode}
	sum := func(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }
	write := func(version int, sums string) (string, error) {
		record := &checkpoint.Record{Format: checkpoint.Format, Run: "r1", Role: events.RoleCode, Version: version, Step: version}
		err := folder.Write(t.Context(), record, func(dir string) error {
			return errors.Join(
				os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte("weights"), 0o644),
				os.WriteFile(filepath.Join(dir, "config.json"), []byte("config"), 0o644),
				os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums), 0o644))
		})
		return record.WeightsSHA256, err
	}
	line := func(sum, name string, size int) string {
		return fmt.Sprintf("%s  %s\n# %d bytes: %s\n", sum, name, size, name)
	}
	for i, c := range []struct{ sums, weights, damaged string }{
		{"", sum("weights"), ""},
		{line(sum("weights"), "model.safetensors", 7), sum("weights"), ""},
		{line(sum("other"), "model.safetensors", 8), sum("weights"), ""}, // of another size
		{line(sum("other"), "model.safetensors", 7), sum("other"), "model.safetensors"},
		{line(sum("gone"), "gone", 4), sum("weights"), ""},
		{sum("weights") + "  model.safetensors\n", sum("weights"), ""}, // no size
	} {
		weights, err := write(i+1, c.sums)
		if err != nil || weights != c.weights {
			t.Errorf("%q: weights %s, want %s; %v", c.sums, weights, c.weights, err)
		}
		var damaged *checkpoint.Error
		_, err = folder.Read(t.Context(), i+1)
		if errors.As(err, &damaged) != (c.damaged != "") || damaged != nil && damaged.File != c.damaged {
			t.Errorf("%q: %v, want damage of %q", c.sums, err, c.damaged)
		}
		if list, err := os.ReadFile(filepath.Join(folder.Dir(i+1), "SHA256SUMS")); err != nil || strings.Contains(string(list), "gone") {
			t.Errorf("%q: %s, %v", c.sums, list, err)
		}
	}
	if _, err := write(9, "no sums\n"); err == nil || !strings.Contains(err.Error(), "SHA256SUMS") {
		t.Errorf("%v", err)
	}
}

// Weights in shards have one sum for events, and a change or the lack of a shard is noticed.
func TestWeightsInShards(t *testing.T) {
	t.Parallel()
	folder := checkpoint.Folder{Path: filepath.Join(t.TempDir(), "code"), Run: "r1", Role: events.RoleCode}
	files := map[string]string{"model.safetensors.index.json": "{}", "model-00001-of-00002.safetensors": "one", "model-00002-of-00002.safetensors": "two"}
	record := &checkpoint.Record{Format: checkpoint.Format, Run: "r1", Role: events.RoleCode, Version: 1, Step: 1}
	err := folder.Write(t.Context(), record, func(dir string) (err error) {
		for name, content := range files {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		lines += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(files[name])), name)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(lines))); record.WeightsSHA256 != want {
		t.Errorf("weights %s, want %s", record.WeightsSHA256, want)
	}
	named, err := checkpoint.Describe(t.Context(), folder.Dir(1))
	if err != nil || named.SHA256 != record.WeightsSHA256 {
		t.Errorf("%+v, %v", named, err)
	}
	if dir, err := folder.Find(t.Context(), 1, named); err != nil || dir != folder.Dir(1) {
		t.Errorf("%s, %v", dir, err)
	}
	shard := filepath.Join(folder.Dir(1), "model-00002-of-00002.safetensors")
	for _, damage := range []func() error{
		func() error { return os.WriteFile(shard, []byte("three"), 0o644) },
		func() error { return os.Remove(shard) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		var damaged *checkpoint.Error
		if _, err := folder.Find(t.Context(), 1, named); !errors.As(err, &damaged) {
			t.Errorf("%v", err)
		}
		if _, err := folder.Read(t.Context(), 1); !errors.As(err, &damaged) {
			t.Errorf("%v", err)
		}
	}
}

// Tensors that are not in SHA256SUMS are refused: an engine prefers model.safetensors to
// shards. So is a trainer.json that names other weights, and a pipe in place of a file, which
// would block the reader.
func TestForeignFilesInAVersion(t *testing.T) {
	t.Parallel()
	sum := func(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }
	for _, c := range []struct {
		file   string
		damage func(dir string) error
	}{
		{"model.safetensors", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte("others"), 0o644)
		}},
		{"model-00003-of-00003.safetensors", func(dir string) error {
			return os.Symlink("model-00001-of-00002.safetensors", filepath.Join(dir, "model-00003-of-00003.safetensors"))
		}},
		{"optimizer.safetensors", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "optimizer.safetensors"), []byte("others"), 0o644)
		}},
		{"model-00002-of-00002.safetensors", func(dir string) error {
			path := filepath.Join(dir, "model-00002-of-00002.safetensors")
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644))
		}},
		{"trainer.json", func(dir string) error {
			path, list := filepath.Join(dir, "trainer.json"), filepath.Join(dir, "SHA256SUMS")
			record, err := os.ReadFile(path)
			sums, sumsErr := os.ReadFile(list)
			_, weights, _ := strings.Cut(string(record), `"weights_sha256": "`)
			changed := strings.Replace(string(record), weights[:64], sum("other weights"), 1)
			return errors.Join(err, sumsErr, os.WriteFile(path, []byte(changed), 0o644),
				os.WriteFile(list, []byte(strings.Replace(string(sums), sum(string(record)), sum(changed), 1)), 0o644))
		}},
	} {
		folder := checkpoint.Folder{Path: filepath.Join(t.TempDir(), "code"), Run: "r1", Role: events.RoleCode}
		record := &checkpoint.Record{Format: checkpoint.Format, Run: "r1", Role: events.RoleCode, Version: 1, Step: 1}
		err := folder.Write(t.Context(), record, func(dir string) (err error) {
			for _, name := range []string{"model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"} {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := folder.Read(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := c.damage(folder.Dir(1)); err != nil {
			t.Fatal(err)
		}
		var damaged *checkpoint.Error
		if _, err := folder.Read(t.Context(), 1); !errors.As(err, &damaged) || damaged.File != c.file {
			t.Errorf("%s: %v", c.file, err)
		}
	}
}
