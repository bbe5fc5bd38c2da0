package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codea1/events"
)

// One process at a time works on a run.
func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, dir, train("--steps", "5000", "--name", "r", "--heldout", "")...)
	first.tap(t, func(int, *events.Message) bool { return false })

	if got := refused(t, dir, "train", "--resume", "r"); !strings.Contains(got, "in use") {
		t.Errorf("resumed a second time: %s", got)
	}
	if got := refused(t, dir, train("--name", "r")...); !strings.Contains(got, "exists already") {
		t.Errorf("started a second time: %s", got)
	}
	// The first process still works.
	first.tap(t, func(_ int, m *events.Message) bool { return m.Type != events.TypeGroupRewarded })
	first.interrupt(t)
}

// smallDisk mounts a file system of a size in MiB.
func smallDisk(t *testing.T, mebibytes string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+mebibytes+"m"); err != nil {
		required(t, "a file system to fill cannot be mounted: "+err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	t.Run("at the start", func(t *testing.T) {
		disk := smallDisk(t, "64")
		got := refused(t, t.TempDir(), train("--steps", "2", "--name", "r", "--runs-dir", disk)...)
		if !strings.HasPrefix(got, "disk full: ") {
			t.Error(got)
		}
		if _, err := os.Stat(filepath.Join(disk, "r")); err == nil {
			t.Error("a run that has not begun leaves its directory behind")
		}
	})
	t.Run("in the middle", func(t *testing.T) {
		dir, disk := t.TempDir(), smallDisk(t, "512")
		p := start(t, dir, train("--steps", "5000", "--name", "r", "--runs-dir", disk, "--heldout", "")...)
		p.tap(t, func(_ int, m *events.Message) bool { return m.Type != events.TypePolicyUpdated })
		// Another file takes the space, except for less than the log reserves for
		// a clean stop.
		filler := filepath.Join(disk, "filler")
		if err := os.WriteFile(filler, make([]byte, 300<<20), 0o644); err != nil {
			t.Fatal(err)
		}
		if code := p.wait(t); code != 1 {
			t.Fatalf("exit code %d, want 1", code)
		}
		if got, err := oneSentence(p.stderr.String()); err != nil || !strings.HasPrefix(got, "disk full: ") || !strings.HasSuffix(got, "free some space and resume the run") {
			t.Errorf("%v: %s", err, got)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		p = start(t, dir, "train", "--runs-dir", disk, "--resume", "r")
		p.tap(t, func(_ int, m *events.Message) bool { return m.Type != events.TypePolicyUpdated })
		p.interrupt(t)
	})
}
