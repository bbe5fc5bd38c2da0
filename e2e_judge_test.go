package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/execution/judging"
	"codea1/events"
)

// rewardModel serves a reward model as vLLM does. Its score follows from the code.
func rewardModel(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/classify" || request.Model != "m" || len(request.Messages) != 2 {
			http.Error(w, fmt.Sprintf("%s: %v, %+v", r.URL.Path, err, request), http.StatusBadRequest)
			return
		}
		hash := fnv.New32()
		fmt.Fprint(hash, request.Messages[1].Content)
		fmt.Fprintf(w, `{"object": "list", "data": [{"index": 0, "label": "LABEL_0", "probs": [%v], "num_classes": 1}]}`, float64(hash.Sum32()%1000)/100-5)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A run with a judge for its reward is verified, and its rewards computed again are the
// recorded ones. Its weights are the same if each judge is killed with a group in hand. A run
// without a judge has no judgements, and computing such a reward for it names them.
func TestTrainingWithAJudge(t *testing.T) {
	t.Parallel()
	onlyThorough(t, "judge, events and recipes have tests of it")
	const steps = 2
	server := rewardModel(t)
	args := train("--steps", fmt.Sprint(steps), "--heldout", "", "--reward", "codescaler", "--judge-model", "m", "--judge-server", server)
	dir := t.TempDir()
	must(t, dir, append(args, "--name", "c")...)
	if out := must(t, dir, "replay", "verify", "c"); !strings.Contains(out, "every effect has its cause, every group ends once and is trained once") {
		t.Error(out)
	}
	groups, scores := 0, map[string]bool{}
	for line := range strings.Lines(must(t, dir, "replay", "rescore", "c", "--reward", "codescaler", "--groups", "--json")) {
		var g struct{ Before, After json.RawMessage }
		if err := json.Unmarshal([]byte(line), &g); err != nil {
			t.Fatal(err)
		}
		if g.Before != nil {
			groups++
			scores[string(g.Before)] = true
			if !bytes.Equal(g.Before, g.After) {
				t.Errorf("recorded %s\ncomputed again %s", g.Before, g.After)
			}
		}
	}
	if groups == 0 || len(scores) < 2 || !strings.Contains(must(t, dir, "replay", "export", "c"), `"judged":{"answers"`) {
		t.Errorf("%d groups were computed again, with %d different rewards, or none has judgements", groups, len(scores))
	}
	if why := refused(t, completedRun(t), "replay", "rescore", "r", "--reward", "codescaler"); !strings.Contains(why, "lacks `judged`") {
		t.Error(why)
	}
	want := read(t, runPath(dir, "c"), steps)
	c := newCrew(t, t.TempDir(), startGuardedNATS(t), args)
	judges := []*member{c.add(events.StageJudge, "--judge-server", server), c.add(events.StageJudge, "--judge-server", server)}
	c.tapAndKill(judges, events.TypeCodeSampled)
	c.same(steps, want)
}

// With a Test LLM, the judge comes before the suites. It changes no weight of a run that
// only measures for it, also if each judge is killed with a group in hand.
func TestTrainingWithAJudgeAndATestLLM(t *testing.T) {
	t.Parallel()
	onlyThorough(t, "TestRolloutOfTestsForJudgedAnswers and TestTrainingWithAJudge have its parts")
	server := rewardModel(t)
	args := train("--steps", fmt.Sprint(sharedSteps), "--measure-for", "codescaler", "--judge-model", "m", "--judge-server", server)
	want := read(t, runPath(completedRun(t), "r"), sharedSteps)
	c := newCrew(t, t.TempDir(), startGuardedNATS(t), args)
	judges := []*member{c.add(events.StageJudge, "--judge-server", server), c.add(events.StageJudge, "--judge-server", server)}
	c.tapAndKill(judges, events.TypeCodeSampled)
	run := runPath(c.dir, c.run)
	if diff := cmp.Diff(want.Weights, read(t, run, sharedSteps).Weights); diff != "" {
		t.Errorf("other weights (-without +with a judge):\n%s", diff)
	}
	if out := must(t, c.dir, "replay", "verify", c.run); !strings.Contains(out, "every effect has its cause, every group ends once and is trained once") {
		t.Error(out)
	}
	if out := must(t, c.dir, "replay", "rescore", c.run, "--reward", "codescaler"); !strings.Contains(out, "codescaler") {
		t.Error(out)
	}
	if out := must(t, c.dir, "replay", "retrain", c.run, "--role", "test"); !strings.Contains(out, "same") {
		t.Error(out)
	}
}

// A run that cannot have the judge of its reward is refused before it begins, with the flag
// that is missing.
func TestRefusedJudges(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--reward codescaler": "--judge-model", "--reward codescaler --judge-model m --measure-for seccoderx": "one judge model",
		"--measure-for codescaler": "--judge-model", "--shadow codescaler,seccoderx --judge-model m": "one judge model",
	} {
		if _, err := parse(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", args, err, want)
		}
	}
	s := &mustParse(t, "--reward", "golden", "--measure-for", "secure").RunSettings
	if s.models() != events.ModelsJudged || !slices.Equal(s.Reward.Judges(), []events.Judge{events.JudgeFindings}) || judging.Asks(s.Reward.Judges()) {
		t.Errorf("%s, %v", s.models(), s.Reward.Judges())
	}
	for args, want := range map[string]events.Models{
		"--measure-for secure": events.ModelsJudgedBoth, "--reward secure-a1": events.ModelsJudgedBoth, "--reward selfplay --shadow secure": events.ModelsJudgedShared,
		"--frozen test --measure-for secure": events.ModelsJudgedFrozenTest, "--reward a1": events.ModelsBoth,
	} {
		if have := mustParse(t, strings.Fields(args)...).models(); have != want {
			t.Errorf("%s: the models are %q, want %q", args, have, want)
		}
	}
	s = &mustParse(t, "--reward", "seccoderx", "--judge-model", "m").RunSettings
	if _, err := openJudge(s, nil); err == nil || !strings.Contains(err.Error(), "--judge-server") {
		t.Error(err)
	}
}
