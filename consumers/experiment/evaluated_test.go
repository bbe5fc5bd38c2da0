package experiment

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// arms is a Host whose runs have a Test LLM unless their preset is golden.
type arms struct{ Host }

func (arms) Configure(arm *Arm, _ uint64) (string, error) {
	config := arm.Preset
	for _, s := range arm.Settings {
		config += " " + s.Key + "=" + s.Value
	}
	return config, nil
}
func (arms) HasTest(config string) (bool, error)             { return !strings.HasPrefix(config, "golden"), nil }
func (arms) CheckEvaluation([]string) error                  { return nil }
func (arms) Content(context.Context, string) (string, error) { return "aa", nil }

const evaluatedFile = `
seeds: [1, 2]
baseline: golden
arms:
  golden: {preset: golden}
  a:
  static: {preset: golden, tests-of: a, tests-of-step: 3-4}
  b: {alpha: 0}
evaluate:
  mul: {benchmark: b, role: test, tests: 2}
  avg: {benchmark: b}
`

func evaluatedRuns(t *testing.T, dir string) []*Run {
	t.Helper()
	m, err := parse("first.yaml", []byte(evaluatedFile))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := plan(m, dir, arms{})
	if err == nil {
		err = assign(t.Context(), m, runs, arms{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// A run without a Test LLM has no evaluation of one. The models before training are
// evaluated once for each seed.
func TestEvaluationsOfRuns(t *testing.T) {
	var all []string
	for _, r := range evaluatedRuns(t, "d") {
		for _, task := range r.tasks {
			text := r.Name + " " + task.Name
			if task.before {
				text += " before"
			}
			all = append(all, text)
		}
	}
	want := "golden-s1 avg before, a-s1 mul before, a-s1 avg, static-s1 avg, b-s1 mul, b-s1 avg, " +
		"golden-s2 avg before, a-s2 mul before, a-s2 avg, static-s2 avg, b-s2 mul, b-s2 avg"
	if have := strings.Join(all, ", "); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
}

// Static supervision: a run has the problems that the run of the same seed has written.
// A recorded source is trained again as long as these do not exist.
func TestTestsOfAnotherRun(t *testing.T) {
	dir := t.TempDir()
	runs := evaluatedRuns(t, dir)
	source, static := runs[5], runs[6]
	if static.Name != "static-s2" || static.source != source || source.Name != "a-s2" {
		t.Fatalf("%s has its tests from %s", static.Name, source.Name)
	}
	path := filepath.Join(dir, "problems", "static-s2.jsonl")
	if static.config != "golden problems="+path || static.arm != "golden" || static.problems() != path {
		t.Errorf("configuration %q, of the arm %q", static.config, static.arm)
	}
	source.recorded = &Record{recorded: &RunResult{}}
	if err := needSources(runs); err != nil || !source.again || runs[1].again {
		t.Errorf("the source is not trained again, or a run that is not recorded: %v", err)
	}
	source.again = false
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := needSources(runs); err != nil || source.again {
		t.Errorf("the source is trained again: %v", err)
	}

	id := &Identity{Settings: map[string]string{"alpha": "1"}, Defaults: map[string]string{"alpha": "0.5"}, Problems: "own", Heldout: "bb"}
	of := &Identity{Settings: map[string]string{"alpha": "0"}, Defaults: map[string]string{"alpha": "0.5"}, Problems: "pp", Heldout: "bb"}
	both := id.withSource(&static.Arm.Tests, of)
	arm, run := &ArmResult{Configuration: both.Settings}, &RunResult{Semantics: Semantics, Inputs: Inputs{Problems: "exported", Heldout: "bb"}}
	if differ := both.differences(arm, run); differ != "" {
		t.Error(differ)
	}
	of.Settings["alpha"], of.Problems = "0.25", "qq"
	want := "tests-of alpha was 0 and is 0.25; tests-of problems SHA-256 was pp and is qq"
	if differ := id.withSource(&static.Arm.Tests, of).differences(arm, run); differ != want {
		t.Errorf("have %s\nwant %s", differ, want)
	}
}

// Recorded evaluations belong to the evaluations of the file.
func TestRecordedEvaluations(t *testing.T) {
	was := func() []Evaluated {
		return []Evaluated{{Name: "mul", Configuration: map[string]string{"benchmark": "b", "role": "test", "tests": "2"}, Content: "aa", Before: []Value{{"Mul", 1}}, After: []Value{{"Mul", 0.5}}}}
	}
	for name, c := range map[string]struct {
		change func(e *Evaluated)
		want   string
	}{
		"same":    {func(*Evaluated) {}, ""},
		"changed": {func(e *Evaluated) { e.Configuration["tests"] = "3" }, "the evaluation mul, but tests was 3 and is 2: undo the change"},
		"less":    {func(e *Evaluated) { delete(e.Configuration, "role") }, "the evaluation mul, but role was not set and is test"},
		"more":    {func(e *Evaluated) { e.Configuration["greedy"] = "true" }, "the evaluation mul, but greedy was true and is not set"},
		"content": {func(e *Evaluated) { e.Content = "bb" }, "the evaluation mul, but the content of its benchmark was another"},
		"gone":    {func(e *Evaluated) { e.Name = "reach" }, "the evaluation reach, which the experiment does not have"},
	} {
		runs := evaluatedRuns(t, "d")
		recorded := was()
		c.change(&recorded[0])
		err := runs[3].adoptEvaluations(recorded) // b-s1, without an evaluation before training
		if c.want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
			continue
		}
		if err != nil || runs[3].evaluationsLeft() != 1 {
			t.Errorf("%s: %v, %d left", name, err, runs[3].evaluationsLeft())
		}
		if all := runs[3].evaluations(); len(all) != 1 || all[0].Before != nil || all[0].After[0].Value != 0.5 {
			t.Errorf("%s: %+v", name, all)
		}
	}
}
