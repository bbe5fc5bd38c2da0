package rundir_test

import (
	"os"
	"path/filepath"
	"strings"
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
