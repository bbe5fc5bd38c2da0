package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/rundir"
)

// A run accepts a recipe file in place of the name of a recipe, and needs the file
// only at its start. It is interrupted early, and the hint how to go on finds it in its
// runs directory.
func TestTrainingUnderARecipeFile(t *testing.T) {
	onlyThorough(t, "the rewards of a recipe have tests")
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "mean.yaml")
	if err := os.WriteFile(file, []byte("advantage: mean\nvalidity: 0.25\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, train("--steps", "2", "--name", "r", "--heldout", "", "--runs-dir", "elsewhere", "--reward", file)...)
	p.tap(t, func(int, *events.Message) bool {
		p.signal(t, os.Interrupt)
		return false
	})
	p.interrupted(t)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	hint := resumeHint.FindStringSubmatch(p.stdout.String())
	if hint == nil {
		t.Fatalf("no hint how to go on:\n%s", p.stdout.String())
	}
	must(t, dir, strings.Fields(hint[1])...)
	run := filepath.Join(dir, "elsewhere", "r")
	must(t, dir, "replay", "verify", run)
	const name = "formula(validity=0.25,advantage=mean)"
	for group, r := range read(t, run, 2).Rewards {
		if r.Recipe != name {
			t.Errorf("%s was rewarded by %s", group, r.Recipe)
		}
	}
	if config, err := os.ReadFile(rundir.Config(run)); err != nil || !strings.Contains(string(config), "reward: "+name) {
		t.Errorf("%v\n%s", err, config)
	}
	for args, want := range map[string]string{"nowhere.yaml": "no such file", "best": "unknown reward recipe"} {
		if why := refused(t, dir, train("--reward", args)...); !strings.Contains(why, want) {
			t.Errorf("%s: %s", args, why)
		}
	}
}

// A training asks for the fields that its recipe needs, and for nothing else.
func TestTrainingAsksForTheNeedsOfItsRecipe(t *testing.T) {
	t.Parallel()
	for _, name := range rewards.Names() {
		recipe, err := rewards.New(name, rewards.DefaultAlpha)
		if err != nil {
			t.Fatal(err)
		}
		schedule, err := mustParse(t, "--reward", name, "--judge-model", "m").schedule()
		if rules := recipe.Rules(); err != nil || schedule.Golden != rules.Golden || schedule.Cross != rules.Cross || schedule.Probes != string(rules.Probe) ||
			schedule.Judges != string(rules.Judge) || schedule.Models.Judged() != (rules.Judge != "") {
			t.Errorf("%s: %+v, %v; want %+v", name, schedule, err, rules)
		}
	}
}

// A training measures for other recipes, too, and its weights stay the same. A shadow
// computes these recipes.
func TestTrainingMeasuresForOtherRecipes(t *testing.T) {
	t.Parallel()
	others := []string{"cure", "mutation", "coverage", "verpo"}
	schedule, err := mustParse(t, "--measure-for", strings.Join(others, ",")).schedule()
	if err != nil || !schedule.Golden || !schedule.Cross || schedule.Probes != "mutants,branches" {
		t.Errorf("golden %v, cross %v, probes %q, %v", schedule.Golden, schedule.Cross, schedule.Probes, err)
	}
	onlyThorough(t, "the schedule has a test")
	dir := t.TempDir()
	must(t, dir, train("--steps", strconv.Itoa(sharedSteps), "--name", "r", "--measure-for", strings.Join(others, ","))...)
	if diff := cmp.Diff(read(t, runPath(completedRun(t), "r"), sharedSteps).Weights, read(t, runPath(dir, "r"), sharedSteps).Weights); diff != "" {
		t.Errorf("other weights (-without +with):\n%s", diff)
	}
	out := must(t, dir, "shadow", "r", "--reward", "a1", "--reward", others[0], "--reward", others[1], "--reward", others[2], "--reward", others[3])
	for _, name := range append(others, "a1") {
		if !strings.Contains(out, fmt.Sprintf("%d groups under %s, ", 3*sharedSteps, name)) {
			t.Errorf("no comparison with %s:\n%s", name, out)
		}
	}
}

// A set that is hardened from a log is not easier than the problems of the run: the ground
// truths pass its tests, and each answer of the untrained model that passes them passes the
// golden tests of the run. The answers are the same, because the seeds are.
func TestHardenedProblems(t *testing.T) {
	onlyThorough(t, "the filter has tests")
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, train("--steps", "1", "--heldout", "", "--answers", "4", "--suites", "4", "--reward", "cure", "--name", "w")...)
	must(t, dir, "replay", "export", "w", "--table", "hardened", "--out", "hardened.jsonl")
	var posed, hardened bytes.Buffer // the same problems
	all := must(t, dir, "problems", "list", train()[3], "--json")
	for line := range strings.Lines(must(t, dir, "problems", "list", "hardened.jsonl", "--json")) {
		id := regexp.MustCompile(`^{"id":"[^"]+"`).FindString(line)
		for golden := range strings.Lines(all) {
			if id != "" && strings.HasPrefix(golden, id) {
				posed.WriteString(golden)
				hardened.WriteString(line)
			}
		}
	}
	passed := map[string]map[string]bool{} // by set and answer
	tests := map[string]int{}
	for name, set := range map[string]*bytes.Buffer{"posed": &posed, "hardened": &hardened} {
		if err := os.WriteFile(filepath.Join(dir, name+".jsonl"), set.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		must(t, dir, "problems", "check", name+".jsonl")
		must(t, dir, train("--preset", "sft", "--reward", "golden", "--heldout", name+".jsonl", "--eval-answers", "8", "--name", name)...)
		passed[name] = map[string]bool{}
		for line := range strings.Lines(must(t, dir, "replay", "export", name, "--table", "answers")) {
			var a struct {
				Group  string `json:"group"`
				Answer int    `json:"answer"`
				Text   string `json:"text"`
				Loads  bool   `json:"loads"`
				Golden int    `json:"golden"`
				Passed int    `json:"golden_passed"`
			}
			if err := json.Unmarshal([]byte(line), &a); err != nil {
				t.Fatal(err)
			}
			passed[name][fmt.Sprintln(a.Group, a.Answer, a.Text)] = a.Loads && a.Golden == a.Passed
			tests[name] += a.Golden
		}
	}
	if len(passed["posed"]) == 0 || tests["hardened"] <= tests["posed"] {
		t.Errorf("%d answers, %d verdicts of hardened tests, %d of golden ones", len(passed["posed"]), tests["hardened"], tests["posed"])
	}
	for answer, pass := range passed["hardened"] {
		if golden, same := passed["posed"][answer]; !same || pass && !golden {
			t.Errorf("not the same answer, or it passes the hardened tests only: %s", answer)
		}
	}
}

// Predict problems are made from ground truths and trained on without a Test LLM. A reward
// that cannot reward the problems of a set is refused at the start.
func TestTrainingOnPredictProblems(t *testing.T) {
	onlyThorough(t, "every stage has a test of predict problems")
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "problems", "predict", train()[3], "--out", "predict.jsonl", "--calls", "1")
	args := train("--steps", "1", "--problems", "predict.jsonl", "--heldout", "")
	must(t, dir, append(args, "--name", "p", "--reward", "execverify")...)
	if out := must(t, dir, "replay", "verify", "p"); !strings.Contains(out, "every effect has its cause, every group ends once and is trained once") {
		t.Error(out)
	}
	if out := must(t, dir, "replay", "export", "p"); !strings.Contains(out, `"predict":["output"`) || strings.Contains(out, `"tests.sampled"`) {
		t.Error("no group has predictions, or one has suites")
	}
	must(t, dir, "replay", "rescore", "p", "--reward", "golden")
	if why := refused(t, completedRun(t), "replay", "rescore", "r", "--reward", "execverify"); !strings.Contains(why, "code.executed lacks `predict`") {
		t.Error(why)
	}
	if why := refused(t, dir, append(args, "--name", "q")...); !strings.Contains(why, "is a predict problem") {
		t.Error(why)
	}
	if why := refused(t, dir, train("--name", "q", "--reward", "execverify")...); !strings.Contains(why, "is no predict problem") {
		t.Error(why)
	}
}

// A run with a recipe that needs more than its suites is verified, and its rewards computed
// again are the recorded ones bit by bit. A run with the default recipe has nothing
// of it, and computing such a reward for it names the missing field.
func TestTrainingOnTheWholeGroup(t *testing.T) {
	onlyThorough(t, "execution, curriculum and recipes have tests of it")
	t.Parallel()
	for recipe, field := range map[string]string{"cure": "cross", "mutation": "probes", "coverage": "probes"} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			const steps = 2
			dir := t.TempDir()
			args := train("--steps", strconv.Itoa(steps), "--heldout", "", "--reward", recipe)
			must(t, dir, append(args, "--name", "c")...)
			if out := must(t, dir, "replay", "verify", "c"); !strings.Contains(out, "every effect has its cause, every group ends once and is trained once") {
				t.Error(out)
			}
			groups := 0
			for line := range strings.Lines(must(t, dir, "replay", "rescore", "c", "--reward", recipe, "--groups", "--json")) {
				var g struct{ Before, After json.RawMessage }
				if err := json.Unmarshal([]byte(line), &g); err != nil {
					t.Fatal(err)
				}
				if g.Before != nil {
					groups++
					if !bytes.Equal(g.Before, g.After) {
						t.Errorf("recorded %s\ncomputed again %s", g.Before, g.After)
					}
				}
			}
			measured := regexp.MustCompile(`"` + field + `":[{\[]`)
			if groups == 0 || !measured.MatchString(must(t, dir, "replay", "export", "c")) {
				t.Errorf("%d groups were computed again, or no group has %s", groups, field)
			}
			if out := must(t, completedRun(t), "replay", "export", "r"); strings.Contains(out, `"`+field+`":`) {
				t.Errorf("a run with the default recipe has %s", field)
			}
			if why := refused(t, completedRun(t), "replay", "rescore", "r", "--reward", recipe); recipe != "cure" && !strings.Contains(why, "lacks `"+field+"`") {
				t.Error(why)
			}
			if recipe != "mutation" {
				return // one with kills is enough
			}
			// Each replica of the execution stage is killed while it measures a group.
			want := read(t, runPath(dir, "c"), steps)
			c := newCrew(t, t.TempDir(), startGuardedNATS(t), args)
			executors := slices.DeleteFunc(slices.Clone(c.members), func(m *member) bool { return m.args[1] != events.StageExecution })
			c.tapAndKill(executors, events.TypeTestsSampled)
			c.same(steps, want)
		})
	}
	if why := refused(t, completedRun(t), "replay", "rescore", "r", "--reward", "utrl"); !strings.Contains(why, "lacks `cross`") {
		t.Error(why)
	}
}
