package rundir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"codea1/events/rundir"
)

func TestCreateAndFind(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dir, err := rundir.Create(runs, "", "seed: 1\n", now)
	if err != nil || filepath.Base(dir) != "20260102-030405" {
		t.Fatalf("%s, %v", dir, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != rundir.DirMode {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(rundir.Config(dir)); err != nil || string(text) != "seed: 1\n" {
		t.Errorf("configuration %q, %v", text, err)
	}
	for _, run := range []string{"20260102-030405", dir} {
		if found, err := rundir.Find(runs, run); err != nil || found != dir {
			t.Errorf("%s: found %s, %v", run, found, err)
		}
	}
	if _, err := rundir.Create(runs, "20260102-030405", "", now); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("created twice: %v", err)
	}
	if _, err := rundir.Create(runs, "a/b", "", now); err == nil || !strings.Contains(err.Error(), "--name") {
		t.Errorf("a name with a slash: %v", err)
	}
	if _, err := rundir.Find(runs, "none"); err == nil || !strings.Contains(err.Error(), `run "none"`) {
		t.Errorf("found none: %v", err)
	}
	if entries, _ := os.ReadDir(runs); len(entries) != 1 {
		t.Errorf("%d entries are left in the runs directory, want 1", len(entries))
	}
}

// A file is replaced in one step, with the permissions that the umask leaves.
func TestWriteFile(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o026))
	dir := t.TempDir()
	for _, c := range []struct{ mode, want fs.FileMode }{{rundir.FileMode, 0o640}, {rundir.SecretMode, 0o600}} {
		path := filepath.Join(dir, c.mode.String())
		for _, content := range []string{"longer content", "new"} {
			if err := rundir.WriteFile(path, []byte(content), c.mode); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			info, statErr := os.Stat(path)
			if err != nil || statErr != nil || string(text) != content || info.Mode().Perm() != c.want {
				t.Errorf("%q with mode %v, %v", text, info.Mode(), err)
			}
		}
	}
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "by"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := rundir.WriteFile(taken, nil, rundir.FileMode); err == nil {
		t.Error("a directory was replaced")
	}
	if err := rundir.WriteFile(filepath.Join(dir, "none", "file"), nil, rundir.FileMode); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("%d entries, want 2 files and a directory", len(entries))
	}
}
