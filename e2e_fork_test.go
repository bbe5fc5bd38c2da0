package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
)

// stopAfter starts a run and stops it once an event is on the bus.
func stopAfter(t *testing.T, dir string, wanted func(m *events.Message) bool, args ...string) {
	t.Helper()
	p := start(t, dir, args...)
	p.tap(t, func(_ int, m *events.Message) bool {
		if wanted(m) {
			p.signal(t, os.Interrupt)
			return false
		}
		return true
	})
	p.interrupted(t)
}

// trainInParts completes a run and returns the table. Where tests are thorough, the run
// is stopped in its first step and resumed.
func trainInParts(t *testing.T, dir, name string, args []string) (table string) {
	t.Helper()
	args = append(args, "--name", name)
	if !thorough() { // TestInterruptedTrainingGoesOn resumes a run
		return must(t, dir, args...)
	}
	stopAfter(t, dir, func(m *events.Message) bool { return m.Type == events.TypeGroupRewarded }, args...)
	return must(t, dir, "train", "--resume", name)
}

// A fork without changes gives the same results as its origin: from the middle of a
// step, and from a step without its checkpoint. TestInterruptedTrainingGoesOn
// forks at the end of a log.
func TestForkGoesOnAsItsOrigin(t *testing.T) {
	t.Parallel()
	const steps = sharedSteps
	dir := copied(t)
	want := read(t, runPath(dir, "r"), steps)

	// The last step is unfinished there: all its problems are posed, some are
	// answered.
	last := fmt.Sprintf("s%06d-", steps)
	must(t, dir, "replay", "fork", "r", "mid-step", "--at", placeOf(t, runPath(dir, "r"), events.TypeCodeSampled, last))
	after := start(t, dir, "replay", "fork", "r", "after-step", "--at", fmt.Sprint("step:", steps-1))
	if code := after.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		want := fmt.Sprintf(`(?m)^training %s v1 to v%d again, because the checkpoint was not kept; that takes about \d+`, role, steps-1)
		if said := after.stderr.String(); !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("the fork says %q, want %s", said, want)
		}
	}
	names := []string{"mid-step"}
	if thorough() { // TestForkUnderAnotherConfiguration goes on after the step, too
		names = append(names, "after-step")
	}
	for _, name := range names {
		if out := must(t, dir, "train", "--resume", name); strings.Contains(out, "in attempt") {
			t.Errorf("the first attempt of the fork is another one:\n%s", out)
		}
		got := read(t, runPath(dir, name), steps)
		if diff := cmp.Diff(want, got, sameRun); diff != "" {
			t.Errorf("%s (-origin +fork):\n%s", name, diff)
		}
		if out := must(t, dir, "replay", "verify", name); !strings.Contains(out, "every effect has its cause") {
			t.Errorf("%s: %s", name, out)
		}
	}
	// The group was answered before the fork and trained on after it.
	explained := must(t, dir, "replay", "explain", "mid-step", "--group", last+"q0000")
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		if sum := want.Weights[version(role, steps)]; !strings.Contains(explained, sum) {
			t.Errorf("explain does not name the weights of %s v%d, %s:\n%s", role, steps, sum, explained)
		}
	}
	if !thorough() {
		return
	}
	if out := must(t, dir, "replay", "retrain", "mid-step"); strings.Count(out, fmt.Sprint(steps, " versions trained again")) != 2 {
		t.Errorf("a fork is trained again: %s", out)
	}
}

// placeOf returns the number of the first event of a type whose group begins so.
func placeOf(t *testing.T, run string, eventType events.Type, group string) string {
	t.Helper()
	log, err := eventlog.Open(rundir.Log(run), eventlog.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for r, err := range log.Read(t.Context(), eventlog.ReadOptions{Types: []events.Type{eventType}}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(r.Message.Group, group) {
			return fmt.Sprint(r.Seq)
		}
	}
	t.Fatalf("no %s of %s", eventType, group)
	return ""
}

// A fork with other settings uses them from its first step on and records them.
func TestForkUnderAnotherConfiguration(t *testing.T) {
	onlyThorough(t, "the other test of forks has the same command")
	t.Parallel()
	const steps = sharedSteps
	dir := copied(t)
	must(t, dir, "replay", "fork", "r", "hot", "--at", fmt.Sprint("step:", steps-1), "--set", "learning-rate=0.01", "--set", "alpha=0.25")
	configured := func(name, line string) bool {
		text, err := os.ReadFile(rundir.Config(runPath(dir, name)))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), line)
	}
	if !configured("r", "sandboxes: 2\n") || !configured("hot", "sandboxes: 2\n") {
		t.Error("the fork does not have the machine settings of its origin")
	}
	must(t, dir, "train", "--resume", "hot")
	origin, fork := read(t, runPath(dir, "r"), steps), read(t, runPath(dir, "hot"), steps)
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		if a, b := version(role, steps-1), version(role, steps); origin.Weights[a] != fork.Weights[a] || origin.Weights[b] == fork.Weights[b] {
			t.Errorf("%s: %v and %v", role, origin.Weights, fork.Weights)
		}
	}
	// Each part is trained again with its own settings.
	if out := must(t, dir, "replay", "retrain", "hot"); strings.Count(out, fmt.Sprint(steps, " versions trained again")) != 2 {
		t.Errorf("a fork is trained again: %s", out)
	}
	for group, r := range fork.Rewards {
		if want := map[bool]float64{true: 0.25, false: 0.5}[strings.HasPrefix(group, fmt.Sprintf("s%06d-", steps))]; r.Alpha != want {
			t.Errorf("%s was rewarded with alpha %v", group, r.Alpha)
		}
	}
	started := fork.started[len(fork.started)-1]
	if !strings.Contains(started.Config, "alpha: 0.25") || !strings.Contains(started.Config, "learning-rate: 0.01") || fork.started[1].Origin.Run != "r" {
		t.Errorf("%+v\n%s", fork.started[1].Origin, started.Config)
	}
	for _, change := range []string{"problems-per-step=4", "reward=best", "nonsense=1"} {
		if why := refused(t, dir, "replay", "fork", "r", "other", "--set", change); !strings.Contains(why, "--set") {
			t.Errorf("--set %s: %s", change, why)
		}
	}
	if why := refused(t, dir, "replay", "fork", "r", "other", "--at", "end", "--set", "steps=1"); !strings.Contains(why, "too few steps are planned: 1, and "+strconv.Itoa(steps)) {
		t.Error(why)
	}
	must(t, dir, "replay", "fork", "r", "longer", "--at", "end", "--set", "steps=7")
	if out := must(t, dir, "replay", "state", "longer"); !strings.Contains(out, fmt.Sprint(steps, " of 7")) {
		t.Errorf("not of 7 steps: %s", out)
	}
	if left, _ := filepath.Glob(runPath(dir, "other") + "*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
