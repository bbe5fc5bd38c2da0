package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"codea1/events"
	"codea1/gpuworker/openai/openaitest"
)

// A frozen model is sampled from and never trained: the run has no trainer, no version
// and no idle stage of it, and the commands of replay hold. The first step of the other
// model is that of a run that trains both.
func TestFrozenRole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trainInParts(t, dir, "f", train("--frozen", "test", "--steps", strconv.Itoa(sharedSteps)))
	got := read(t, runPath(dir, "f"), sharedSteps)
	if got.started[0].Models != events.ModelsFrozenTest || got.ended() != events.RunCompleted {
		t.Errorf("models %q, ended with %q", got.started[0].Models, got.ended())
	}
	both := read(t, runPath(completedRun(t), "r"), sharedSteps)
	if first := version(events.RoleCode, 1); got.Weights[first] != both.Weights[first] {
		t.Error("the first step has other weights than in a run that trains both models")
	}
	if last := version(events.RoleCode, sharedSteps); got.Weights[last] == both.Weights[last] {
		t.Error("a Test LLM that is not trained has changed nothing")
	}
	for group, r := range got.Rewards {
		if r.TestVersion != 0 || r.CodeVersion != r.Plan.Step-1 || r.Plan.Suites == 0 {
			t.Errorf("%s: %d suites of v%d, answers of v%d", group, r.Plan.Suites, r.TestVersion, r.CodeVersion)
		}
	}
	if out := must(t, dir, "replay", "verify", "f"); !strings.Contains(out, "every effect has its cause, every group ends once and is trained once") {
		t.Error(out)
	}
	if out := must(t, dir, "replay", "retrain", "f"); out != fmt.Sprintf("code: %d versions trained again, each with the same weights\n", sharedSteps) {
		t.Error(out)
	}
	if out := must(t, dir, "replay", "export", "f"); strings.Contains(out, `"source":"trainer-test`) {
		t.Error("the frozen model has a trainer")
	}
	if why := refused(t, dir, "replay", "fork", "f", "other", "--set", "frozen=code"); !strings.Contains(why, "--set frozen") || !strings.Contains(why, "start a new run") {
		t.Error(why)
	}
	if why := refused(t, dir, train("--preset", "golden", "--frozen", "test")...); !strings.Contains(why, "--frozen test: the reward golden has no separate Test LLM") {
		t.Error(why)
	}
}

// A server that takes no weights may sample the frozen role of a training.
func TestFrozenRoleOnAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := &openaitest.Server{}
	address := modelServer(t, server)
	must(t, dir, train("--frozen", "code", "--sampler", "openai", "--server", address, "--model", "small", "--steps", "1", "--name", "s")...)
	got := read(t, runPath(dir, "s"), 1)
	if len(got.Weights) != 1 || got.Weights[version(events.RoleTest, 1)] == "" || got.started[0].Code.URI != address+"#small" {
		t.Errorf("versions %v, the Code LLM is %s", got.Weights, got.started[0].Code.URI)
	}
	if n := server.Requests(); n < 1+3*2 {
		t.Errorf("%d requests, want a probe and one for each answer of the step", n)
	}
	if out := must(t, dir, "replay", "verify", "s"); !strings.Contains(out, "every effect has its cause") {
		t.Error(out)
	}
	if out := must(t, dir, "replay", "retrain", "s"); out != "test: 1 versions trained again, each with the same weights\n" {
		t.Error(out)
	}
}
