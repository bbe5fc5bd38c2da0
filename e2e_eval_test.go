package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/evaluation"
	"codea1/events"
	"codea1/events/rundir"
)

// An evaluation that is interrupted or killed, and resumed, has the results of an
// undisturbed one. It samples from a version of a run, and its log holds what it takes
// to make the results again.
func TestEvaluationIsResumed(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	heldout, err := filepath.Abs("testdata/heldout.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	eval := func(name string) []string {
		return []string{"eval", "r", heldout, "--samples", "4", "--name", name, "--call-timeout", "5s", "--sandboxes", "1"}
	}
	files := func(name string) (texts []string) {
		for _, path := range []string{rundir.Results(runPath(dir, name)), rundir.Samples(runPath(dir, name))} {
			text, err := os.ReadFile(path)
			if err != nil || len(text) == 0 {
				t.Fatalf("%s: %d bytes, %v", path, len(text), err)
			}
			texts = append(texts, string(text))
		}
		return texts
	}
	table := must(t, dir, eval("whole")...)
	want := files("whole")

	ended := []string{"killed"}
	if thorough() {
		stopAfter(t, dir, func(m *events.Message) bool { return m.Type == events.TypeCodeSampled }, eval("stopped")...)
		ended = append(ended, "stopped")
	}
	killed := start(t, dir, eval("killed")...)
	killed.tap(t, func(_ int, m *events.Message) bool { return m.Type != events.TypeProblemPosed })
	killed.signal(t, os.Kill)
	killed.wait(t)
	killed.alone(t)
	for _, name := range ended {
		if again := must(t, dir, "eval", "--resume", name); again != table {
			t.Errorf("%s: the table is\n%s\nwant\n%s", name, again, table)
		}
		if d := cmp.Diff(want, files(name)); d != "" {
			t.Errorf("%s (-whole):\n%s", name, d)
		}
		if out := must(t, dir, "replay", "verify", name); !strings.Contains(out, " intact, ends with") {
			t.Errorf("%s:\n%s", name, out)
		}
	}

	var sum evaluation.Summary
	if err := json.Unmarshal([]byte(must(t, dir, "eval", "--resume", "whole", "--json")), &sum); err != nil || sum.Problems != 2 || sum.Answers != 4 || sum.Benchmark != "heldout" {
		t.Errorf("%+v, %v", sum, err)
	}
	if d := cmp.Diff(want, files("whole")); d != "" {
		t.Errorf("the results change when they are printed again:\n%s", d)
	}
	same := must(t, dir, "compare", runPath(dir, "whole"), rundir.Results(runPath(dir, "killed")))
	if !strings.Contains(same, "+0.0 points (+0.0 to +0.0)") {
		t.Errorf("compare with itself:\n%s", same)
	}
	// A run without steps has no trainer: neither checkpoints nor versions.
	for _, path := range []string{rundir.Checkpoints(runPath(dir, "whole"), events.RoleTest), filepath.Join(rundir.Checkpoints(runPath(dir, "whole"), events.RoleCode), "v000001")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s exists", path)
		}
	}
}
