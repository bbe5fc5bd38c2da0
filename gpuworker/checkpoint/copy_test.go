package checkpoint_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/gpuworker/checkpoint"
)

// Copy leaves either a complete version or none: over the same version, after a
// kill of an earlier copy, and for a damaged source.
func TestCopyIsAtomic(t *testing.T) {
	t.Parallel()
	folder := checkpoint.Folder{Path: filepath.Join(t.TempDir(), "code"), Run: "r1", Role: events.RoleCode}
	if _, err := folder.Open(); err != nil {
		t.Fatal(err)
	}
	for v := 1; v <= 4; v++ {
		r := &checkpoint.Record{Format: checkpoint.Format, Run: "r1", Role: events.RoleCode, Version: v, Step: v, Position: "5"}
		if err := folder.Write(t.Context(), r, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "model.safetensors"), fmt.Append(nil, "weights ", v), 0o644)
		}); err != nil {
			t.Fatal(err)
		}
	}
	dir := func(version string) string { return filepath.Join(folder.Path, version) }
	for range 2 {
		if err := checkpoint.Copy(t.Context(), folder, folder, 3, "17"); err != nil {
			t.Fatal(err)
		}
	}
	// As after a kill between the two renames.
	if err := os.Rename(dir("v000003"), dir(".replaced-v000003")); err != nil {
		t.Fatal(err)
	}
	if v, err := folder.Versions(); err != nil || !slices.Equal(v, []int{1, 2, 3, 4}) {
		t.Fatalf("versions %v, %v", v, err)
	}
	if err := checkpoint.Copy(t.Context(), folder, folder, 3, "18"); err != nil {
		t.Fatal(err)
	}
	if r, err := folder.Read(t.Context(), 3); err != nil || r.Position != "18" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := folder.Remove(4); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder.Path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"v000001", "v000002", "v000003"}, names); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(dir("v000002"), "model.safetensors"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	to := checkpoint.Folder{Path: filepath.Join(t.TempDir(), "to"), Run: "r2", Role: events.RoleCode}
	var damaged *checkpoint.Error
	if err := checkpoint.Copy(t.Context(), folder, to, 2, "18"); !errors.As(err, &damaged) {
		t.Errorf("a damaged checkpoint: %v", err)
	}
	if v, err := to.Versions(); err != nil || len(v) > 0 {
		t.Errorf("versions %v, %v", v, err)
	}
}

func TestCreateInitial(t *testing.T) {
	t.Parallel()
	from := fstest.MapFS{"model.safetensors": {Data: []byte("weights")}, "config.json": {Data: []byte("{}")}, "folder/other": {Data: []byte("x")}}
	to := filepath.Join(t.TempDir(), "start", "code")
	if err := checkpoint.CreateInitial(from, to); err != nil {
		t.Fatal(err)
	}
	again := to + "-copy"
	if err := checkpoint.CopyInitial(to, again); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{to, again} {
		for name, want := range map[string]string{"model.safetensors": "weights", "config.json": "{}"} {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("%s holds %v, %v", dir, entries, err)
		}
	}
}
