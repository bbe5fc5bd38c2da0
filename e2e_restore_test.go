package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
)

// A bus that lost its last events in a power cut is restored from the log, and the
// run is resumed without loss.
func TestRestoreBus(t *testing.T) {
	onlyThorough(t, "the tests of package fork restore a bus")
	t.Parallel()
	const steps = sharedSteps
	dir := t.TempDir()
	run := runPath(dir, "r")
	first := func(of events.Type) func(*events.Message) bool {
		return func(m *events.Message) bool { return m.Type == of }
	}
	stopAfter(t, dir, first(events.TypeGroupRewarded), train("--steps", strconv.Itoa(steps), "--name", "r")...)
	before := filepath.Join(t.TempDir(), "nats")
	if err := os.CopyFS(before, os.DirFS(rundir.NATS(run))); err != nil {
		t.Fatal(err)
	}
	stopAfter(t, dir, first(events.TypePolicyUpdated), "train", "--resume", "r")
	if err := os.RemoveAll(rundir.NATS(run)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(rundir.NATS(run), os.DirFS(before)); err != nil {
		t.Fatal(err)
	}
	// The attempt that notices the loss adds events to the damaged bus.
	p := start(t, dir, "train", "--resume", "r")
	if code := p.wait(t); code != 1 || !strings.Contains(p.stderr.String(), "codea1 replay restore-bus r publishes them") {
		t.Errorf("exit code %d on a bus that has lost events", code)
	}
	must(t, dir, "replay", "restore-bus", "r")
	if _, err := os.Stat(rundir.NATS(run) + ".lost-1"); err != nil {
		t.Errorf("the damaged bus is deleted: %v", err)
	}
	must(t, dir, "train", "--resume", "r")
	if diff := cmp.Diff(read(t, runPath(completedRun(t), "r"), steps), read(t, run, steps), sameRun); diff != "" {
		t.Errorf("(-undisturbed +restored):\n%s", diff)
	}
	must(t, dir, "replay", "verify", "r")

	// A lost log is rebuilt from the bus.
	want := endOf(t, run)
	if err := os.RemoveAll(rundir.Log(run)); err != nil {
		t.Fatal(err)
	}
	rebuilt := filepath.Join(t.TempDir(), "r")
	must(t, dir, "replay", "rebuild", "r", rebuilt, "--from-bus", "embedded")
	if got := endOf(t, rebuilt); got != want {
		t.Errorf("rebuilt from the bus the log ends with %s, it was %s", got, want)
	}
	must(t, dir, "replay", "verify", rebuilt)
}

// endOf returns how many events a run's log has, and its last chain hash.
func endOf(t *testing.T, run string) string {
	t.Helper()
	log, err := eventlog.Open(rundir.Log(run), eventlog.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	events, chain := log.Last()
	return fmt.Sprintf("%d %s", events, chain)
}
