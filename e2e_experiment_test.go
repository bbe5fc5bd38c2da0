package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/experiment"
	"codea1/events/rundir"
)

// experimentFile writes the file of an experiment with the settings of train. tests is the
// number of tests of its evaluation; arms has a line per configuration.
func experimentFile(t *testing.T, path string, seeds string, tests int, arms ...string) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "seeds: [%s]\nsettings:\n", seeds)
	for _, line := range strings.Split(strings.Join(train()[2:], " "), " --") {
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "--"), " ")
		fmt.Fprintf(&b, "  %s: %s\n", key, value)
	}
	fmt.Fprintf(&b, "arms:\n  %s\n", strings.Join(arms, "\n  "))
	heldout, err := filepath.Abs("testdata/heldout.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "evaluate:\n  mul: {benchmark: %s, role: test, tests: %d}\n", heldout, tests)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// savedBy returns, for each run and evaluation of an experiment that has a log, the
// versions that it has saved.
func savedBy(dir string) map[string]string {
	all := map[string]string{}
	runs, _ := filepath.Glob(filepath.Join(dir, "runs", "*", "log", "LOCK"))
	evaluations, _ := filepath.Glob(filepath.Join(dir, "evaluations", "*", "*", "*", "log", "LOCK"))
	for _, path := range append(runs, evaluations...) {
		run := filepath.Dir(filepath.Dir(path))
		versions, _ := filepath.Glob(filepath.Join(run, "checkpoints", "*", "v*"))
		all[run] = strings.Join(versions, " ")
	}
	return all
}

// writer returns the training or evaluation that writes the log of a run; 0 for none. It
// takes no lock, which could keep a training from its start.
func writer(run string) int {
	text, _ := os.ReadFile(filepath.Join(rundir.Log(run), "LOCK"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if pid > 0 && err == nil && (strings.Contains(string(line), "train") || strings.Contains(string(line), "eval")) {
		return pid
	}
	return 0
}

// disturb runs an experiment to its end. Each kill takes the experiment, a training
// or both, after a training has made its log or saved a version since the kill before.
func disturb(t *testing.T, dir string, kills int, args ...string) (table string) {
	t.Helper()
	experiment := filepath.Join(dir, "experiments", "matrix")
	t.Cleanup(func() { // an orphan of a killed experiment
		for run := range savedBy(experiment) {
			if pid := writer(run); pid > 0 {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	before := savedBy(experiment)
	p := start(t, dir, args...)
	for n := 0; n < kills; {
		ended, run, pid := false, "", 0
		happens := func() bool {
			select {
			case <-p.ended:
				ended = true
				return true
			default:
			}
			now := savedBy(experiment)
			for name := range now {
				last, known := before[name]
				if pid = writer(name); pid > 0 && (!known || last != now[name]) {
					run, before = name, now
					return true
				}
			}
			return false
		}
		for deadline := time.Now().Add(6 * patience); !happens(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no training of the experiment saves a version")
			}
		}
		if ended {
			t.Logf("%d of %d kills", n, kills)
			break
		}
		if n%3 != 1 {
			p.signal(t, syscallKill)
			p.wait(t)
		}
		if n%3 != 0 {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		t.Logf("kill %d: %s", n+1, run)
		if n%3 != 1 {
			p = start(t, dir, args...)
		}
		n++
	}
	return p.trains(t)
}

// trains waits for the end of an experiment, which trains several runs, and returns
// what it printed.
func (p *child) trains(t *testing.T) string {
	t.Helper()
	if code := p.waitFor(t, 6*patience); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	return p.stdout.String()
}

// An experiment whose processes are killed ends with the table of an undisturbed one.
// It trains each version of each run once. A second start changes nothing, and a
// changed file is refused.
func TestExperimentSurvivesKills(t *testing.T) {
	t.Parallel()
	kills, seeds := 1, "1"
	arms := []string{"r: {steps: " + strconv.Itoa(sharedSteps) + "}"}
	if thorough() {
		kills, seeds = 12, "1, 2"
		arms = append(arms, "golden: {preset: golden, steps: 3}", "static: {preset: golden, steps: 3, tests-of: r, tests-of-step: 2-3}")
	}
	dir := t.TempDir()
	experimentFile(t, filepath.Join(dir, "matrix.yaml"), seeds, 2, arms...)
	table := disturb(t, dir, kills, "experiment", "matrix.yaml", "--parallel", "2")
	at := filepath.Join(dir, "experiments", "matrix")
	events := func() map[string]int {
		logged := map[string]int{}
		runs, _ := filepath.Glob(filepath.Join(at, "runs", "*"))
		for _, run := range runs {
			logged[run] = read(t, run, sharedSteps).events
		}
		return logged
	}
	for _, want := range []string{"EVALUATION MUL: ", "pass@2", "Mul"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %s:\n%s", want, table)
		}
	}
	runs := events()
	if want := len(arms) * len(strings.Split(seeds, ",")); len(runs) != want {
		t.Fatalf("%d runs, want %d: %v", len(runs), want, runs)
	}

	if thorough() {
		quiet := t.TempDir()
		experimentFile(t, filepath.Join(quiet, "matrix.yaml"), seeds, 2, arms...)
		if diff := cmp.Diff(start(t, quiet, "experiment", "matrix.yaml").trains(t), table); diff != "" {
			t.Errorf("-undisturbed +disturbed:\n%s", diff)
		}
	} else if diff := cmp.Diff(figuresOf(t, completedRun(t), "r"), figuresOf(t, at, "r-s1")); diff != "" {
		t.Errorf("-undisturbed +disturbed:\n%s", diff)
	}

	p := start(t, dir, "experiment", "matrix.yaml")
	if code := p.wait(t); code != 0 || p.stdout.String() != table || strings.Contains(p.stderr.String(), "begins") || strings.Contains(p.stderr.String(), "resumes") {
		t.Errorf("a second start: exit code %d, or another table:\n%s", code, p.stdout.String())
	}
	if !maps.Equal(runs, events()) {
		t.Error("a second start has changed a run")
	}
	var results experiment.Results
	if err := json.Unmarshal([]byte(must(t, dir, "experiment", "matrix.yaml", "--json")), &results); err != nil {
		t.Error(err)
	}
	if i := slices.IndexFunc(results.Arms, func(a experiment.ArmResult) bool { return a.Name == "r" }); i < 0 || results.Arms[i].Runs[0].Tokens == 0 {
		t.Errorf("%+v", results)
	}
	if page, err := os.ReadFile(filepath.Join(at, "report.html")); err != nil || !strings.Contains(string(page), "Held-out problems: Code LLM avg@k") {
		t.Errorf("no page, or one without curves: %v", err)
	}
	if out := must(t, dir, "experiment", "matrix.yaml", "--results", "--markdown"); !strings.HasPrefix(out, "# Experiment matrix\n") {
		t.Error(out)
	}
	if out := must(t, dir, "experiment", "matrix.yaml", "--dry-run"); !strings.Contains(out, fmt.Sprintf("\n%d of %d runs are completed.", len(runs), len(runs))) {
		t.Error(out)
	}
	experimentFile(t, filepath.Join(dir, "matrix.yaml"), seeds, 1, arms...)
	if why := refused(t, dir, "experiment", "matrix.yaml"); why != "run r-s1: its evaluation mul has begun, but tests was 2 and is 1: undo the change, or give the evaluation another name" {
		t.Error(why)
	}
	begun := arms[0]
	arms[0] = "r: {steps: 4, alpha: 0.25, sandboxes: 2}"
	experimentFile(t, filepath.Join(dir, "matrix.yaml"), seeds, 2, arms...)
	if why := refused(t, dir, "experiment", "matrix.yaml"); !strings.HasPrefix(why, "run r-s1: steps is 4, but the run has begun with 3; alpha is 0.25, but the run has begun with 0.5: ") {
		t.Error(why)
	}

	// Recorded runs count without their directories.
	arms[0] = begun
	experimentFile(t, filepath.Join(dir, "matrix.yaml"), seeds, 2, arms...)
	must(t, dir, "experiment", "matrix.yaml", "--results", "--record")
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	if out := must(t, dir, "experiment", "matrix.yaml", "--dry-run"); !strings.Contains(out, fmt.Sprintf("%d of %d runs are completed, %d of them recorded.", len(runs), len(runs), len(runs))) {
		t.Error(out)
	}
	if diff := cmp.Diff(table, must(t, dir, "experiment", "matrix.yaml")); diff != "" {
		t.Errorf("-trained +recorded:\n%s", diff)
	}
	if runs := savedBy(at); len(runs) > 0 {
		t.Errorf("recorded runs were trained again: %v", runs)
	}
	experimentFile(t, filepath.Join(dir, "matrix.yaml"), seeds, 1, arms...)
	if why := refused(t, dir, "experiment", "matrix.yaml"); why != "matrix.json has, of the run r-s1, the evaluation mul, but tests was 2 and is 1: undo the change, give the evaluation another name, or take it out of the file" {
		t.Error(why)
	}
	arms[0] = "r: {steps: " + strconv.Itoa(sharedSteps) + ", alpha: 0.25, sandboxes: 2}"
	experimentFile(t, filepath.Join(dir, "matrix.yaml"), seeds, 2, arms...)
	if why := refused(t, dir, "experiment", "matrix.yaml"); why != "matrix.json has the run r-s1, but alpha was 0.5 and is 0.25: undo the change, give the configuration another name, or take the run out of the file" {
		t.Error(why)
	}
}

// figuresOf returns the figures of a run below a directory, without its times.
func figuresOf(t *testing.T, dir, run string) map[string]float64 {
	t.Helper()
	record, err := experiment.ReadRecord(t.Context(), &experimentHost{}, filepath.Join(dir, rundir.Default, run))
	if err != nil {
		t.Fatal(err)
	}
	f := map[string]float64{"tokens": float64(record.Tokens), "step": float64(record.Trained())}
	for k, v := range record.After().PassAt() {
		f[fmt.Sprint("pass@", k+1)] = v
	}
	f["validity"], f["reach"], f["kept"] = record.After().Validity(), record.After().Reach(), float64(record.After().Kept)
	return f
}
