package checkpoint_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"codea1/gpuworker/checkpoint"
)

// A process that ended during a download leaves a part of it. The next one continues.
func TestDownloadContinues(t *testing.T) {
	address := "file://" + t.TempDir()
	remote, folder := machine(t, address)
	named := write(t, folder, 1, "")
	noErr(t, remote.Upload(t.Context(), 1, folder.Dir(1)))
	for name, part := range map[string]func([]byte) []byte{
		"a part":         func(b []byte) []byte { return b[:len(b)/3] },
		"all":            func(b []byte) []byte { return b },
		"a damaged part": func(b []byte) []byte { return append([]byte("X"), b[1:100]...) },
		"too much":       func(b []byte) []byte { return append(b, b...) },
	} {
		t.Run(name, func(t *testing.T) {
			other, _ := machine(t, address)
			stored, err := remote.Objects.List(t.Context(), "r1")
			noErr(t, err)
			copyDir := strings.Split(stored[0], "/")[3]
			weights, err := os.ReadFile(filepath.Join(folder.Dir(1), "model.safetensors"))
			noErr(t, err)
			partial := filepath.Join(other.Cache, ".fetch-"+copyDir)
			noErr(t, os.MkdirAll(partial, 0o755))
			noErr(t, os.WriteFile(filepath.Join(partial, "model.safetensors"), part(weights), 0o644))
			noErr(t, os.Mkdir(filepath.Join(other.Cache, ".fetch-v000009-of-before"), 0o755))
			offsets := &offsetsOf{Objects: other.Objects, file: "model.safetensors"}
			other.Objects = offsets
			_, err = other.Fetch(t.Context(), 1, named)
			noErr(t, err)
			if offsets.first != int64(len(part(weights))) {
				t.Errorf("the download went on at %d of %d bytes", offsets.first, len(weights))
			}
			if left, _ := filepath.Glob(filepath.Join(other.Cache, ".fetch-*")); len(left) > 0 {
				t.Errorf("left in the cache: %v", left)
			}
		})
	}
}

// offsetsOf notes where the first download of a file begins.
type offsetsOf struct {
	checkpoint.Objects
	file  string
	once  sync.Once
	first int64
}

func (o *offsetsOf) Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	if strings.HasSuffix(key, o.file) {
		o.once.Do(func() { o.first = offset })
	}
	return o.Objects.Get(ctx, key, offset)
}

// A store that anyone may write to cannot fill the disk of a rollout: an object without
// an end is cut at its size in SHA256SUMS, and sizes beyond the free disk space are
// refused before anything is fetched.
func TestEndlessObject(t *testing.T) {
	root := t.TempDir()
	remote, folder := machine(t, "file://"+root)
	named := write(t, folder, 1, "")
	noErr(t, remote.Upload(t.Context(), 1, folder.Dir(1)))
	stored, err := filepath.Glob(filepath.Join(root, "r1/checkpoints/code/v000001-*"))
	noErr(t, err)
	sums, err := os.ReadFile(filepath.Join(stored[0], "SHA256SUMS"))
	noErr(t, err)
	size := int64(len("weights 1") * 10_000)
	line := fmt.Sprintf("# %d bytes: model.safetensors\n", size)
	if !bytes.Contains(sums, []byte(line)) {
		t.Fatalf("SHA256SUMS lacks %q:\n%s", line, sums)
	}
	fetch := func() (int64, error) {
		other, _ := machine(t, "file://"+root)
		store := &endless{Objects: other.Objects, file: "model.safetensors"}
		other.Objects = store
		_, err := other.Fetch(t.Context(), 1, named)
		var damaged *checkpoint.Error
		if !errors.As(err, &damaged) {
			t.Fatalf("fetched an endless object: %v", err)
		}
		return store.read, err
	}
	// It is fetched twice, because a part of a file may be damaged.
	if read, err := fetch(); read > 3*(size+1) || !strings.Contains(err.Error(), "has not the content") {
		t.Errorf("%d bytes were read of an object of %d: %v", read, size, err)
	}
	noErr(t, os.RemoveAll(stored[0]))
	huge := bytes.Replace(sums, []byte(line), []byte("# 4611686018427387904 bytes: model.safetensors\n"), 1)
	name := filepath.Join(filepath.Dir(stored[0]), fmt.Sprintf("v000001-%x", sha256.Sum256(huge))[:len("v000001-")+16])
	noErr(t, os.Mkdir(name, 0o755))
	noErr(t, os.WriteFile(filepath.Join(name, "SHA256SUMS"), huge, 0o644))
	if read, err := fetch(); read != 0 || !strings.Contains(err.Error(), "has no room") {
		t.Errorf("%d bytes were read: %v", read, err)
	}
}

// endless is a store in which a file has no end.
type endless struct {
	checkpoint.Objects
	file string
	read int64
}

func (e *endless) Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	if strings.HasSuffix(key, e.file) {
		return io.NopCloser(e), nil
	}
	return e.Objects.Get(ctx, key, offset)
}

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.read += int64(len(p))
	return len(p), nil
}

// The copies of earlier builds have no sizes in SHA256SUMS.
func TestSumsWithoutSizes(t *testing.T) {
	root := t.TempDir()
	remote, folder := machine(t, "file://"+root)
	named := write(t, folder, 1, "")
	path := filepath.Join(folder.Dir(1), "SHA256SUMS")
	sums, err := os.ReadFile(path)
	noErr(t, err)
	noErr(t, os.WriteFile(path, sums[:bytes.IndexByte(sums, '#')], 0o644))
	noErr(t, remote.Upload(t.Context(), 1, folder.Dir(1)))
	other, _ := machine(t, "file://"+root)
	if _, err := other.Fetch(t.Context(), 1, named); err != nil {
		t.Error(err)
	}
	if _, err := folder.Read(t.Context(), 1); err != nil {
		t.Error(err)
	}
}
