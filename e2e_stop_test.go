package main

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

const syscallKill = syscall.SIGKILL

var resumeHint = regexp.MustCompile(`(?m)^Resume with: +codea1 (train --resume \S+.*)$`)

func TestInterruptedTrainingGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, train("--steps", "2", "--name", "r")...)
	p.tap(t, func(_ int, m *events.Message) bool {
		if m.Type == events.TypePolicyUpdated {
			p.signal(t, os.Interrupt)
			return false
		}
		return true
	})
	if code := p.wait(t); code != exitInterrupted {
		t.Fatalf("exit code %d", code)
	}
	table := p.stdout.String()
	hint := resumeHint.FindStringSubmatch(table)
	if hint == nil || !strings.Contains(table, "of 2 steps, stopped") {
		t.Fatalf("no hint how to go on:\n%s", table)
	}

	must(t, dir, "replay", "fork", "r", "fork")
	table = must(t, dir, strings.Fields(hint[1])...)
	h := read(t, runPath(dir, "r"), 2)
	if h.finished[0].Reason != events.RunStopped || h.ended() != events.RunCompleted || len(h.started) != 2 {
		t.Errorf("attempts: %d; ends: %+v", len(h.started), h.finished)
	}
	if want := "Run r: 2 of 2 steps, completed in attempt 2"; !strings.Contains(table, want) {
		t.Errorf("no %q:\n%s", want, table)
	}

	t.Run("other commands say that they were interrupted", func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		interrupt()
		var said strings.Builder
		if code := run(ctx, []string{"replay", "verify", runPath(dir, "r")}, io.Discard, &said); code != exitInterrupted || !strings.HasSuffix(said.String(), "interrupted\n") {
			t.Errorf("exit code %d: %q", code, said.String())
		}
	})
	t.Run("a fork of the end of the log goes on as well", func(t *testing.T) {
		onlyThorough(t, "TestForkGoesOnAsItsOrigin has a fork")
		must(t, dir, "train", "--resume", "fork")
		if diff := cmp.Diff(h, read(t, runPath(dir, "fork"), 2), sameRun); diff != "" {
			t.Errorf("(-origin +fork):\n%s", diff)
		}
		if out := must(t, dir, "replay", "verify", "fork"); !strings.Contains(out, "every effect has its cause") {
			t.Error(out)
		}
	})
	t.Run("a run that is done stays as it is", func(t *testing.T) {
		table := must(t, dir, "train", "--resume", "r")
		if want := "Run r: 2 of 2 steps, completed in attempt 3"; !strings.Contains(table, want) {
			t.Errorf("no %q:\n%s", want, table)
		}
		// Only the start and the end of the attempt are new.
		if again := read(t, runPath(dir, "r"), 2); again.events != h.events+2 {
			t.Errorf("%d events have become %d", h.events, again.events)
		}
	})
}

// A budget ends a training early, with an evaluation, and the run can be resumed.
func TestBudgetEndsATraining(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	table := must(t, dir, train("--steps", "100", "--name", "r", "--budget", "1ms")...)
	if want := "Run r: 1 of 100 steps, stopped"; !strings.Contains(table, want) || resumeHint.FindStringSubmatch(table) == nil {
		t.Errorf("no %q or no hint how to go on:\n%s", want, table)
	}
	if !regexp.MustCompile(`at step +0 +1\n`).MatchString(table) {
		t.Errorf("no evaluation at the end:\n%s", table)
	}
	if !thorough() { // TestInterruptedTrainingGoesOn resumes a run
		return
	}
	if table = must(t, dir, "train", "--resume", "r", "--steps", "2", "--budget", "0s"); !strings.Contains(table, "2 of 2 steps, completed") {
		t.Error(table)
	}
}
