//go:build linux && !race

package main

import (
	"syscall"
	"testing"
)

// TestMemoryOfATraining bounds the memory of the process, for small machines. It
// uses the default preset with fewer steps and held-out problems, which do not
// change the memory of a step.
func TestMemoryOfATraining(t *testing.T) {
	onlyThorough(t, "it is a training of its own")
	const limitKiB = 1 << 20
	p := start(t, t.TempDir(), "train", "--no-dashboard", "--steps", "2", "--eval-problems", "4", "--call-timeout", "5s")
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	// The larger peak of this process and of its largest child.
	peak := p.command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	t.Logf("the resident size peaks at %d MiB", peak>>10)
	if peak > limitKiB {
		t.Errorf("the resident size peaks at %d MiB, want %d or less", peak>>10, limitKiB>>10)
	}
}
