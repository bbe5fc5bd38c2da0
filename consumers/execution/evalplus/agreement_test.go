package evalplus

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/internal/sandboxtest"
)

// unzipped copies a release file to one that is not compressed: EvalPlus reads no
// other.
func unzipped(t testing.TB, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(text)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "release.jsonl", string(all))
}

// python returns the output of a script of testdata.
func python(t testing.TB, interpreter, script string, arguments ...string) []byte {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", script))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(interpreter, append([]string{path}, arguments...)...)
	command.Dir = t.TempDir()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, &stderr)
	}
	return out
}

// status is a line that testdata/statuses.py prints.
type status struct {
	TaskID     string `json:"task_id"`
	Base, Plus bool
}

// TestAgreesWithEvalPlus: three samples of mixed quality of each task get the same
// verdicts from EvalPlus itself, for the base tests and for the plus tests. The
// variable names a Python that has EvalPlus (testdata/statuses.py). Tasks with ground
// truths that take seconds are left out, and three of four others unless the run is
// thorough.
func TestAgreesWithEvalPlus(t *testing.T) {
	interpreter := os.Getenv("CODEA1_TEST_EVALPLUS_PYTHON")
	if interpreter == "" {
		t.Skip("CODEA1_TEST_EVALPLUS_PYTHON names no Python with EvalPlus")
	}
	x, workers := generous(t)
	for dataset, name := range map[string]string{"humaneval": "HumanEvalPlus-v0.1.10.jsonl.gz", "mbpp": "MbppPlus-v0.2.0.jsonl.gz"} {
		release := unzipped(t, shared(t, name))
		t.Setenv(strings.ToUpper(dataset)+"_OVERRIDE_PATH", release)
		all, err := ReadFile(release)
		if err != nil {
			t.Fatal(err)
		}
		var tasks []*Task
		for i := 0; i < len(all); i += sandboxtest.Every(1) {
			if !isSlow(all[i].ID) {
				tasks = append(tasks, all[i])
			}
		}
		var chosen bytes.Buffer
		for line := range bytes.Lines(python(t, interpreter, "samples.py", release, "1")) {
			var s Sample
			if err := json.Unmarshal(line, &s); err != nil {
				t.Fatal(err)
			}
			for _, task := range tasks {
				if task.ID == s.TaskID {
					chosen.Write(line)
				}
			}
		}
		file := write(t, "samples.jsonl", chosen.String())
		samples, err := ReadSamples(file, tasks)
		if err != nil {
			t.Fatal(err)
		}
		theirs := map[string][]status{}
		for d := json.NewDecoder(bytes.NewReader(python(t, interpreter, "statuses.py", dataset, file))); ; {
			var s status
			if err := d.Decode(&s); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			theirs[s.TaskID] = append(theirs[s.TaskID], s)
		}
		compared, passing := 0, 0
		err = Grade(t.Context(), x, workers, tasks, samples, func(task *Task, grades []*grading.Grade) error {
			if task.ID == "HumanEval/32" {
				compared += len(grades) // see TESTS.md: EvalPlus 0.3.1 fails every answer
				return nil
			}
			for i, g := range grades {
				want := theirs[task.ID][i]
				base, plus := task.Passed(g.Loads, g.Verdicts)
				// EvalPlus's plus status is that of the plus tests alone.
				if base != want.Base || plus != (want.Base && want.Plus) || g.Failure != "" {
					t.Errorf("%s, sample %d: base %v, base and plus %v; EvalPlus says base %v, plus %v; %s %s\n%s",
						task.ID, i, base, plus, want.Base, want.Plus, g.Failure, g.FirstReason(), samples[task.ID][i])
				}
				if compared++; plus {
					passing++
				}
			}
			return nil
		})
		if err != nil || compared != 3*len(tasks) || passing < len(tasks) || passing > 2*len(tasks) {
			t.Errorf("%s: %d samples of %d tasks compared, %d pass, %v", dataset, compared, len(tasks), passing, err)
		}
		t.Logf("%s: %d samples of %d tasks have the same verdicts, %d pass", dataset, compared, len(tasks), passing)
	}
}
