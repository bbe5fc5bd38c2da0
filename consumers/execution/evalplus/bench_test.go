package evalplus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"codea1/consumers/execution"
	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
)

// BenchmarkGrade grades 8 answers to each of a few tasks of HumanEval+: the ground
// truth with another comment each time, so that the cache has none of them. The expected
// values are made in each round, too.
//
// The limit is the time of the calls themselves in one process. HumanEval/130 is apart,
// because its ten values of 12 MB cost more than the answers to twenty other tasks. An
// answer's process computes each of them and its digest.
func BenchmarkGrade(b *testing.B) {
	all, err := ReadFile(shared(b, "HumanEvalPlus-v0.1.10.jsonl.gz"))
	if err != nil {
		b.Fatal(err)
	}
	x, workers := generous(b)
	for name, chosen := range map[string][]*Task{"usual": {all[2], all[10], all[58], all[90], all[122]}, "large": {all[130]}} {
		b.Run(name, func(b *testing.B) {
			answers, round := 0, 0
			before := sandboxtest.ChildrenCPU(b) + sandboxtest.CPU(b)
			for b.Loop() {
				round++
				samples := map[string][]string{}
				for _, t := range chosen {
					for i := range 8 {
						samples[t.ID] = append(samples[t.ID], fmt.Sprintf("%s\n# %d %d\n", t.Solution(), round, i))
					}
				}
				err := Grade(b.Context(), x, workers, chosen, samples, func(t *Task, grades []*grading.Grade) error {
					for _, g := range grades {
						answers++
						if !g.Solved() {
							b.Errorf("%s: %s", t.ID, g.FirstReason())
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			used := sandboxtest.ChildrenCPU(b) + sandboxtest.CPU(b) - before
			b.ReportMetric(float64(used.Milliseconds())/float64(answers), "cpu-ms/answer")
		})
	}
}

// BenchmarkAgainstEvalPlus grades the same 32 samples of mixed quality to each task of
// HumanEval+ with EvalPlus itself and then with this package, both with two processes and
// from the release file on. CODEA1_TEST_EVALPLUS_PYTHON names a Python that has EvalPlus
// (testdata/statuses.py). Each sample has a comment of its own, so that the cache has
// none of them.
//
//	go test ./consumers/execution/evalplus -run '^$' -bench AgainstEvalPlus/tasks=164 -benchtime 1x -timeout 1h
func BenchmarkAgainstEvalPlus(b *testing.B) {
	interpreter := os.Getenv("CODEA1_TEST_EVALPLUS_PYTHON")
	if interpreter == "" {
		b.Skip("CODEA1_TEST_EVALPLUS_PYTHON names no Python with EvalPlus")
	}
	const each = 32
	all, err := os.ReadFile(unzipped(b, shared(b, "HumanEvalPlus-v0.1.10.jsonl.gz")))
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSpace(string(all)), "\n")
	for _, step := range []int{8, 1} {
		var release strings.Builder
		for i := 0; i < len(lines); i += step {
			release.WriteString(lines[i])
		}
		tasks := (len(lines) + step - 1) / step
		b.Run(fmt.Sprintf("tasks=%d", tasks), func(b *testing.B) {
			file := write(b, "release.jsonl", release.String())
			samples := mixed(b, interpreter, file, each)
			for b.Loop() {
				theirs, theirCPU := evaluate(b, interpreter, file, samples)
				ours, ourCPU := gradeAll(b, file, samples)
				b.ReportMetric(ours.Seconds(), "ours-s")
				b.ReportMetric(theirs.Seconds(), "theirs-s")
				b.ReportMetric(ourCPU.Seconds(), "ours-cpu-s")
				b.ReportMetric(theirCPU.Seconds(), "theirs-cpu-s")
				b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ours/theirs")
				b.ReportMetric(ourCPU.Seconds()/theirCPU.Seconds(), "ours-cpu/theirs-cpu")
			}
		})
	}
}

// mixed writes so many samples of each task of a release file.
func mixed(b *testing.B, interpreter, release string, each int) string {
	b.Helper()
	var all strings.Builder
	written := map[string]int{}
	for seed := 0; 3*seed < each; seed++ {
		for line := range bytes.Lines(python(b, interpreter, "samples.py", release, strconv.Itoa(seed))) {
			var s Sample
			if err := json.Unmarshal(line, &s); err != nil {
				b.Fatal(err)
			}
			if written[s.TaskID] == each {
				continue
			}
			written[s.TaskID]++
			s.Solution += fmt.Sprintf("\n# %d\n", written[s.TaskID])
			if err := json.NewEncoder(&all).Encode(s); err != nil {
				b.Fatal(err)
			}
		}
	}
	return write(b, "samples.jsonl", all.String())
}

// evaluate returns the time that EvalPlus takes, and that of all its processes.
func evaluate(b *testing.B, interpreter, release, samples string) (took, used time.Duration) {
	b.Helper()
	script, err := filepath.Abs("testdata/evaluate.py")
	if err != nil {
		b.Fatal(err)
	}
	command := exec.Command(interpreter, script, "humaneval", samples)
	command.Env = append(os.Environ(), "HUMANEVAL_OVERRIDE_PATH="+release, "XDG_CACHE_HOME="+b.TempDir(), "PYTHONWARNINGS=ignore")
	command.Dir = b.TempDir()
	out, err := command.Output()
	if err != nil {
		b.Fatal(err)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	state := command.ProcessState
	return time.Duration(seconds * float64(time.Second)), state.UserTime() + state.SystemTime()
}

// gradeAll grades samples with the limits of `codea1 eval`. It returns the time that this
// takes, and that of all processes.
func gradeAll(b *testing.B, release, path string) (took, used time.Duration) {
	b.Helper()
	began, before := time.Now(), sandboxtest.CPU(b)
	pool, err := sandbox.Open(b.Context(), sandbox.Config{Workers: 2, CallTimeout: time.Second, JobTimeout: 10 * time.Second, MemoryBytes: 4 << 30})
	if err != nil {
		b.Fatal(err)
	}
	tasks, err := ReadFile(release)
	if err != nil {
		b.Fatal(err)
	}
	samples, err := ReadSamples(path, tasks)
	if err != nil {
		b.Fatal(err)
	}
	failures := 0
	err = Grade(b.Context(), execution.New(pool), 2, tasks, samples, func(_ *Task, grades []*grading.Grade) error {
		for _, g := range grades {
			if g.Failure != "" {
				failures++
			}
		}
		return nil
	})
	took, used = time.Since(began), sandboxtest.CPU(b)+sandboxtest.ChildrenCPU(b)-before
	if err != nil || failures > 0 || pool.Close() != nil {
		b.Fatal(err, failures)
	}
	return took, used
}
