//go:build linux && !race

package main

import (
	"syscall"
	"testing"
)

// TestMemoryOfATraining holds the process to what a small machine has to spare.
// Of the default preset it leaves out steps and held-out problems only: what a
// step holds in memory is all there.
func TestMemoryOfATraining(t *testing.T) {
	const limitKiB = 1 << 20
	p := start(t, t.TempDir(), "train", "--no-dashboard", "--steps", "4", "--eval-problems", "32", "--call-timeout", "5s")
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	// Of this process or of its largest child, whichever is more.
	peak := p.command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	t.Logf("at most %d MiB resident", peak>>10)
	if peak > limitKiB {
		t.Errorf("at most %d MiB resident, want %d or fewer", peak>>10, limitKiB>>10)
	}
}
