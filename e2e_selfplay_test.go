package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"codea1/events"
	"codea1/events/rundir"
)

// A run of the Self-Play baseline has one model. Its versions sample in both roles
// and are trained on both. It is stopped, resumed, verified and trained again.
func TestSelfPlayRunHasOneModel(t *testing.T) {
	t.Parallel()
	const steps = 2
	dir := t.TempDir()
	trainInParts(t, dir, "s", train("--preset", "selfplay", "--steps", strconv.Itoa(steps)))
	h := read(t, runPath(dir, "s"), steps)
	if h.started[0].Models != events.ModelsShared || h.started[0].Test != (events.Checkpoint{}) || h.ended() != events.RunCompleted {
		t.Errorf("%+v, ended with %q", h.started[0], h.ended())
	}
	if _, err := os.Stat(filepath.Dir(rundir.Start(runPath(dir, "s"), events.RoleTest))); err == nil {
		t.Error("there is a Test LLM")
	}
	if out := must(t, dir, "replay", "export", "s"); !strings.Contains(out, `"source":"rollout-test-0"`) || strings.Contains(out, `"source":"trainer-test`) {
		t.Error("the log has no rollout of role test, or a trainer of it")
	}
	// Three problems with two answers and the two suites of one answer each.
	if out := must(t, dir, "replay", "explain", "s", "--step", "1"); !strings.Contains(out, "code v1: step 1, 3 groups, 12 sequences") || strings.Contains(out, "test v1") {
		t.Error(out)
	}
	if out := must(t, dir, "replay", "verify", "s"); !strings.Contains(out, "every effect has its cause, every group ends once and is trained once") {
		t.Error(out)
	}
	// An evaluation of its tests has the prompts of its training, without an answer.
	heldout, err := filepath.Abs("testdata/heldout.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	must(t, dir, "eval", "s", heldout, "--role", "test", "--tests", "2", "--name", "e", "--sandboxes", "1", "--call-timeout", "5s")
	if config, err := os.ReadFile(rundir.Config(runPath(dir, "e"))); err != nil || !strings.Contains(string(config), "{{.Question}}\n  Tests:") {
		t.Errorf("%v\n%s", err, config)
	}
	if out := must(t, dir, "replay", "retrain", "s"); out != fmt.Sprintf("code: %d versions trained again, each with the same weights\n", steps) {
		t.Error(out)
	}
}
