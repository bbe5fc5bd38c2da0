package experiment

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codea1/consumers/dashboard"
	"codea1/consumers/evaluation"
	"codea1/events/rundir"
)

// Semantics is the version of the meaning of a configuration. Raise it when the program
// computes other results for the same settings, seed, problems and models: runs that
// are recorded with another version are not compared with new ones.
const Semantics = 1

// Identity says which configuration a run has.
type Identity struct {
	Settings map[string]string // that decide the results, but the seed
	Defaults map[string]string // of the settings
	Problems string            // SHA-256 of the training problems; empty if a run of the experiment writes them
	Heldout  string            // SHA-256 of the held-out problems; empty without any
}

// Inputs are the hashes of the files that a run started from.
type Inputs struct {
	Problems string `json:"problems,omitempty"`
	Heldout  string `json:"heldout,omitempty"`
	Code     string `json:"code,omitempty"` // weights of the Code LLM
	Test     string `json:"test,omitempty"` // weights of the Test LLM
}

// maxRecordBytes bounds a file with recorded runs.
const maxRecordBytes = 64 << 20

// recordFile returns the file beside the file of an experiment that keeps its
// completed runs.
func recordFile(file string) string {
	return strings.TrimSuffix(file, filepath.Ext(file)) + ".json"
}

// readResults reads a file with recorded runs; nil if there is none.
func readResults(path string) (*Results, error) {
	text, err := readFile(path, maxRecordBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(Results)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: it is no file with results: %w", path, err)
	}
	return r, nil
}

// adopt gives the runs their records in a file. Records that do not belong to the
// experiment as it is now are an error: nothing is mixed or lost. The number of
// records without an evaluation is returned; earlier builds wrote such.
func adopt(runs []*Run, identities map[*Arm]*Identity, path string, r *Results) (unusable int, err error) {
	byName := map[string]*Run{}
	for _, run := range runs {
		byName[run.Name] = run
	}
	for i := range r.Arms {
		arm := &r.Arms[i]
		for j := range arm.Runs {
			recorded := &arm.Runs[j]
			if recorded.After == nil || arm.Configuration == nil {
				unusable++
				continue
			}
			run := byName[recorded.Name]
			if run == nil || run.Seed != recorded.Seed || run.Arm.Name != arm.Name {
				return 0, fmt.Errorf("%s has the run %s, which the experiment does not have: put its configuration and seed back, or take the run out of the file", path, recorded.Name)
			}
			if differ := identities[run.Arm].differences(arm, recorded); differ != "" {
				return 0, fmt.Errorf("%s has the run %s, but %s: undo the change, give the configuration another name, or take the run out of the file", path, recorded.Name, differ)
			}
			if run.recorded, err = recorded.record(r.Evaluated); err != nil {
				return 0, fmt.Errorf("%s: run %s: %w", path, recorded.Name, err)
			}
			if err := run.adoptEvaluations(recorded.Evaluations); err != nil {
				return 0, fmt.Errorf("%s has, of the run %s, %w", path, recorded.Name, err)
			}
		}
	}
	return unusable, nil
}

// differences says why a recorded run is not one of the configuration; empty if it is.
// A setting that the record lacks is newer than it, and must have its default.
func (id *Identity) differences(arm *ArmResult, run *RunResult) string {
	var all []string
	if run.Semantics != Semantics {
		all = append(all, fmt.Sprintf("it was recorded by a program that computes other results (semantics %d, now %d; build %s)", run.Semantics, Semantics, run.Build))
	}
	keys := map[string]bool{}
	for _, settings := range []map[string]string{arm.Configuration, id.Settings} {
		for key := range settings {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		was, recorded := arm.Configuration[key]
		now, known := id.Settings[key]
		switch {
		case !known:
			all = append(all, fmt.Sprintf("%s was %s, and is no setting now", key, was))
		case !recorded && now != id.Defaults[key]:
			all = append(all, fmt.Sprintf("%s is %s, and was not a setting when it was recorded", key, now))
		case recorded && was != now:
			all = append(all, fmt.Sprintf("%s was %s and is %s", key, was, now))
		}
	}
	if in := run.Inputs; id.Problems != "" && in.Problems != id.Problems || in.Heldout != id.Heldout {
		all = append(all, "the content of its problem sets was another")
	}
	return strings.Join(all, "; ")
}

// record returns a recorded run as if it was read from its log.
func (run *RunResult) record(problems []string) (*Record, error) {
	r := &Record{Tokens: run.Tokens, Kept: run.Kept, Elapsed: time.Duration(run.Seconds * float64(time.Second)), Inputs: run.Inputs, recorded: run}
	for _, e := range []struct {
		name string
		from *evaluation.Recorded
		to   **dashboard.Eval
	}{{"before", run.Before, &r.first}, {"after", run.After, &r.newest}} {
		if e.from == nil {
			continue
		}
		figures, err := e.from.Figures(problems)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		*e.to = &dashboard.Eval{Figures: figures}
	}
	return r, nil
}

// checkModels returns an error if runs of an arm started from different weights.
func checkModels(runs []*Run, records []*Record) error {
	first := map[*Arm]int{}
	for i, run := range runs {
		if !records[i].completed() {
			continue
		}
		j, known := first[run.Arm]
		if !known {
			first[run.Arm] = i
			continue
		}
		a, b := records[j].Inputs, records[i].Inputs
		if role := cmp.Or(differ(a.Code, b.Code, "Code LLM"), differ(a.Test, b.Test, "Test LLM")); role != "" {
			return fmt.Errorf("the runs %s and %s started from different weights of the %s: their results are not compared", runs[j].Name, run.Name, role)
		}
	}
	return nil
}

func differ(a, b, name string) string {
	if a == "" || b == "" || a == b {
		return ""
	}
	return name
}

// keep writes the completed runs into a file, from which adopt takes them.
func (r *Results) keep(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := rundir.WriteFile(path, append(text, '\n'), rundir.FileMode); err != nil {
		return fmt.Errorf("record the results: %w", err)
	}
	return nil
}
