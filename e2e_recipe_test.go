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
	"syscall"
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
		schedule, err := mustParse(t, "--reward", name).schedule()
		if rules := recipe.Rules(); err != nil || schedule.Golden != rules.Golden || schedule.Cross != rules.Cross || schedule.Probes != string(rules.Probe) {
			t.Errorf("%s: golden %v, cross %v, probes %q, %v; want %+v", name, schedule.Golden, schedule.Cross, schedule.Probes, err, rules)
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
			killed := 0
			c.tap(func(_ int, m *events.Message) {
				if m.Type == events.TypeTestsSampled && killed < 2*len(executors) {
					executors[killed%len(executors)].signal(syscall.SIGKILL)
					killed++
				}
			})
			if killed < len(executors) {
				t.Errorf("%d replicas were killed", killed)
			}
			c.same(steps, want)
		})
	}
	if why := refused(t, completedRun(t), "replay", "rescore", "r", "--reward", "utrl"); !strings.Contains(why, "lacks `cross`") {
		t.Error(why)
	}
}
