package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recordedMatrix returns an experiment with runs that no directory has, and with two
// settings.
func recordedMatrix(t *testing.T) (*Matrix, []*Run, map[*Arm]*Identity) {
	t.Helper()
	m, err := parse("first.yaml", []byte("seeds: [1, 2]\narms:\n  golden: {preset: golden}\n  a: {alpha: 0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	identities := map[*Arm]*Identity{}
	var runs []*Run
	for _, seed := range m.Seeds {
		for i := range m.Arms {
			arm := &m.Arms[i]
			runs = append(runs, &Run{Arm: arm, Seed: seed, Name: runName(arm.Name, seed), dir: filepath.Join(t.TempDir(), "none")})
			identities[arm] = &Identity{
				Settings: map[string]string{"alpha": "0", "steps": "4"}, Defaults: map[string]string{"alpha": "0.5", "steps": "180"},
				Problems: "aa", Heldout: "bb",
			}
		}
	}
	return m, runs, identities
}

// record writes the file of three completed runs of four.
func record(t *testing.T) (path string, want string) {
	t.Helper()
	m, runs, identities := recordedMatrix(t)
	start := []string{"1000", "0000"}
	records := []*Record{
		recordOf(true, start, []string{"1100", "1000"}, -1), recordOf(true, start, []string{"1110", "1100"}, 4),
		recordOf(true, start, []string{"110", "1100"}, -1), recordOf(false, start, nil, -1),
	}
	for _, r := range records {
		r.Inputs = Inputs{Problems: "aa", Heldout: "bb", Code: "cc"}
	}
	results := newResults(m, runs, records, identities)
	path = filepath.Join(t.TempDir(), "first.json")
	if err := results.keep(path); err != nil {
		t.Fatal(err)
	}
	return path, results.Text()
}

// What is recorded gives the results of the logs that it is from, with all intervals.
// Runs are added to it, and none is lost.
func TestRecordedRuns(t *testing.T) {
	path, want := record(t)
	for range 2 { // the second time from a record of records
		m, runs, identities := recordedMatrix(t)
		results, err := readResults(path)
		if err != nil {
			t.Fatal(err)
		}
		if unusable, err := adopt(runs, identities, path, results); err != nil || unusable > 0 {
			t.Fatal(unusable, err)
		}
		records := make([]*Record, len(runs))
		for i, run := range runs {
			if run.recorded == nil {
				continue
			}
			if records[i], err = run.read(t.Context(), nil); err != nil { // no host: no log is read
				t.Fatal(err)
			}
		}
		if records[3] != nil {
			t.Error("a run that was not completed is recorded")
		}
		again := newResults(m, runs, records, identities)
		if diff := cmp.Diff(want, again.Text()); diff != "" {
			t.Errorf("-logs +record:\n%s", diff)
		}
		if err := again.keep(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecordsOfAnotherExperimentAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *Matrix, id *Identity)
		edit   [2]string // of the file
		want   string
	}{
		"same":             {},
		"setting":          {change: func(_ *Matrix, id *Identity) { id.Settings["steps"] = "5" }, want: "the run a-s1, but steps was 4 and is 5: undo"},
		"new setting":      {change: func(_ *Matrix, id *Identity) { id.Settings["new"], id.Defaults["new"] = "x", "x" }},
		"new setting used": {change: func(_ *Matrix, id *Identity) { id.Settings["new"], id.Defaults["new"] = "y", "x" }, want: "new is y, and was not a setting"},
		"setting gone":     {change: func(_ *Matrix, id *Identity) { delete(id.Settings, "steps") }, want: "steps was 4, and is no setting now"},
		"problems":         {change: func(_ *Matrix, id *Identity) { id.Problems = "other" }, want: "the content of its problem sets was another"},
		"semantics":        {edit: [2]string{`"semantics": 1`, `"semantics": 0`}, want: "other results (semantics 0, now 1; build "},
		"seed gone":        {edit: [2]string{`"golden-s1"`, `"golden-s9"`}, want: "the run golden-s9, which the experiment does not have"},
		"short":            {edit: [2]string{`"correct": "2 1"`, `"correct": "2"`}, want: "correct: it has 1 problems, want the 2"},
		"more correct":     {edit: [2]string{`"correct": "2 1"`, `"correct": "5 1"`}, want: `"5" of problem h0 is no number of correct answers among 4`},
		"many answers": {edit: [2]string{`"answers": 4,
          `, `"answers": 4000000000,
          `}, want: "answers: 4000000000, want 0 to 65536"},
		"negative":        {edit: [2]string{`"right": 4`, `"right": -4`}, want: "right: -4 of 10"},
		"no file of ours": {edit: [2]string{`{`, `[`}, want: "it is no file with results"},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := record(t)
			m, runs, identities := recordedMatrix(t)
			if c.change != nil {
				c.change(m, identities[&m.Arms[1]])
			}
			if c.edit[0] != "" {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				edited := strings.Replace(string(text), c.edit[0], c.edit[1], 1)
				if edited == string(text) {
					t.Fatalf("the file has no %s:\n%s", c.edit[0], text)
				}
				if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			results, err := readResults(path)
			if err == nil {
				_, err = adopt(runs, identities, path, results)
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path)):
				t.Errorf("error %v, want one about %s with %q", err, path, c.want)
			}
		})
	}
}

// Files of earlier builds have no evaluations; their runs are counted and not used.
func TestRecordsWithoutEvaluations(t *testing.T) {
	_, runs, identities := recordedMatrix(t)
	old := &Results{Arms: []ArmResult{{Name: "golden", Runs: []RunResult{{Name: "golden-s1", Seed: 1}}}}}
	if unusable, err := adopt(runs, identities, "first.json", old); unusable != 1 || err != nil || runs[0].recorded != nil {
		t.Error(unusable, err, runs[0].recorded)
	}
	if none, err := readResults(filepath.Join(t.TempDir(), "none.json")); none != nil || err != nil {
		t.Error(none, err)
	}
}

// Runs from different weights are not compared.
func TestRunsFromDifferentWeights(t *testing.T) {
	_, runs, _ := recordedMatrix(t)
	records := map[string]*Record{}
	for _, r := range runs {
		records[r.Name] = &Record{recorded: &RunResult{}, Inputs: Inputs{Code: "cc", Test: "dd"}}
	}
	all := func() []*Record {
		var list []*Record
		for _, r := range runs {
			list = append(list, records[r.Name])
		}
		return list
	}
	if err := checkModels(runs, all()); err != nil {
		t.Error(err)
	}
	records["a-s2"].Inputs.Test = "ee"
	if err := checkModels(runs, all()); err == nil || !strings.Contains(err.Error(), "runs a-s1 and a-s2 started from different weights of the Test LLM") {
		t.Error(err)
	}
}
