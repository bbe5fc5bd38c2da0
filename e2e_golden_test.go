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
)

// A run of the Golden Tests baseline has no Test LLM: no model, no stage and no event
// of it. It is verified, trained again, forked, explained and exported like a run
// with two models, and gives the same results in processes of its own.
func TestGoldenTestsRunWithoutATestLLM(t *testing.T) {
	t.Parallel()
	const steps = 2
	dir := t.TempDir()
	args := train("--preset", "golden", "--steps", strconv.Itoa(steps))
	table := trainInParts(t, dir, "g", args)
	if !strings.Contains(table, "Code LLM avg@2") || strings.Contains(table, "Test LLM") || strings.Contains(table, "Mistake Book") {
		t.Errorf("the table is that of a run with a Test LLM:\n%s", table)
	}
	want := read(t, runPath(dir, "g"), steps)
	if want.started[0].Models != events.ModelsCode || want.ended() != events.RunCompleted {
		t.Errorf("models %q, ended with %q", want.started[0].Models, want.ended())
	}
	learnt := false
	for group, r := range want.Rewards {
		if r.Recipe != "golden" || r.Plan.Suites != 0 || len(r.Deltas) != 0 {
			t.Errorf("%s was rewarded by %s with %d suites and %d changes of the Mistake Book", group, r.Recipe, r.Plan.Suites, len(r.Deltas))
		}
		for _, a := range r.Code {
			learnt = learnt || a.Advantage != 0
		}
	}
	if !learnt {
		t.Error("no answer has an advantage")
	}

	t.Run("nothing of a Test LLM exists", func(t *testing.T) {
		for _, path := range []string{
			filepath.Dir(rundir.Start(runPath(dir, "g"), events.RoleTest)), rundir.Outbox(runPath(dir, "g"), events.StageRolloutTest, 0),
		} {
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%s exists", path)
			}
		}
		out := must(t, dir, "replay", "export", "g")
		for _, absent := range []string{`"tests.sampled"`, `"source":"rollout-test`, `"source":"trainer-test`} {
			if strings.Contains(out, absent) {
				t.Errorf("the log has %s", absent)
			}
		}
	})
	t.Run("the commands of replay hold", func(t *testing.T) {
		if out := must(t, dir, "replay", "verify", "g"); !strings.Contains(out, "every effect has its cause, every group ends once and is trained once") {
			t.Error(out)
		}
		if out := must(t, dir, "replay", "retrain", "g"); out != fmt.Sprintf("code: %d versions trained again, each with the same weights\n", steps) {
			t.Error(out)
		}
		out := must(t, dir, "replay", "explain", "g", "--group", "s000001-q0000")
		if !strings.Contains(out, want.Weights[version(events.RoleCode, 1)]) || !strings.Contains(out, "golden tests:") {
			t.Error(out)
		}
		if out := must(t, dir, "replay", "export", "g", "--table", "answers"); strings.Contains(out, `"code":""`) {
			t.Error("an answer was exported without its code")
		}
	})
	t.Run("another reward needs another run", func(t *testing.T) {
		if why := refused(t, dir, "replay", "fork", "g", "other", "--set", "reward=a1"); !strings.Contains(why, "--set reward") || !strings.Contains(why, "start a new run") {
			t.Error(why)
		}
	})
	t.Run("a fork gives the same results", func(t *testing.T) {
		onlyThorough(t, "TestForkGoesOnAsItsOrigin forks a run of two models")
		must(t, dir, "replay", "fork", "g", "again", "--at", placeOf(t, runPath(dir, "g"), events.TypeCodeSampled, "s000002-"))
		must(t, dir, "train", "--resume", "again")
		if diff := cmp.Diff(want, read(t, runPath(dir, "again"), steps), sameRun); diff != "" {
			t.Errorf("-origin +fork:\n%s", diff)
		}
		if out := must(t, dir, "replay", "verify", "again"); !strings.Contains(out, "every effect has its cause") {
			t.Error(out)
		}
	})
	t.Run("stages in processes of their own give the same results", func(t *testing.T) {
		onlyThorough(t, "TestStagesInProcessesOfTheirOwn has the stages of a run of two models")
		on := startGuardedNATS(t)
		c := &crew{t: t, dir: t.TempDir(), run: crewRun(t), steady: true, bus: func(user string) []string { return on.flags(t, user) }}
		c.endWithTest()
		c.recorder(args)
		for _, s := range events.Stages {
			if s.Name != events.StageJudge && s.Name != events.StageRecorder && s.Name != events.StageDashboard && s.Within == "" {
				c.add(s.Name) // those of the Test LLM end at once
			}
		}
		c.wait()
		c.same(steps, want)
		for _, stage := range []string{events.StageRolloutTest, events.StageTrainerTest} {
			if said := c.member(stage).process.stderr.String(); !strings.Contains(said, "the run has no such stage") {
				t.Errorf("%s: %s", stage, said)
			}
		}
	})
}
