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
	"syscall"
	"testing"

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

// A run whose reward needs a judge is verified, and its rewards computed again are the
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
	killed := 0
	c.tap(func(_ int, m *events.Message) {
		if m.Type == events.TypeCodeSampled && killed < 2*len(judges) {
			judges[killed%len(judges)].signal(syscall.SIGKILL)
			killed++
		}
	})
	if killed < len(judges) {
		t.Errorf("%d judges were killed", killed)
	}
	c.same(steps, want)
}

// A run that cannot have the judge of its reward is refused before it begins, with the flag
// that is missing.
func TestRefusedJudges(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--reward codescaler": "--judge-model", "--reward codescaler --judge-model m --measure-for seccoderx": "one judge model",
		"--measure-for secure": "without a Test LLM", "--reward a1 --measure-for cure,codescaler --judge-model m": "without a Test LLM",
	} {
		if _, err := parse(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", args, err, want)
		}
	}
	s := &mustParse(t, "--reward", "golden", "--measure-for", "secure").RunSettings
	if s.models() != events.ModelsJudged || !slices.Equal(s.judges(), []events.Judge{events.JudgeFindings}) || s.asksJudge() {
		t.Errorf("%s, %v", s.models(), s.judges())
	}
	s = &mustParse(t, "--reward", "seccoderx", "--judge-model", "m").RunSettings
	if _, err := openJudge(s, nil); err == nil || !strings.Contains(err.Error(), "--judge-server") {
		t.Error(err)
	}
}
