package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/evaluation"
	"codea1/events"
	"codea1/events/rundir"
	"codea1/gpuworker/openai/openaitest"
)

// published are two rows and a right response for each published benchmark.
var published = map[string]struct{ rows, response string }{
	"crux": {
		`{"id":"s0","code":"def f(x):\n    return x * 2","input":"'a'","output":"'aa'"}
{"id":"s1","code":"def f(x):\n    return x + x","input":"'a'","output":"'aa'"}`,
		"[ANSWER]assert f('a') == 'aa'[/ANSWER]",
	},
	"live": {
		`{"question_id":"q0","question_content":"Return n.","starter_code":"class Solution:\n    def same(self, n):\n        ","public_test_cases":"[{\"input\":\"1\",\"output\":\"1\",\"testtype\":\"functional\"}]","private_test_cases":"[]","metadata":"{\"func_name\":\"same\"}"}
{"question_id":"q1","question_content":"Return n again.","starter_code":"class Solution:\n    def same(self, n):\n        ","public_test_cases":"[{\"input\":\"2\",\"output\":\"2\",\"testtype\":\"functional\"}]","private_test_cases":"[]","metadata":"{\"func_name\":\"same\"}"}`,
		"```python\nclass Solution:\n    def same(self, n):\n        return n\n```",
	},
	"bigcode": {
		`{"task_id":"BigCodeBench/0","complete_prompt":"def task_func(x):\n","instruct_prompt":"Return x.","code_prompt":"def task_func(x):\n","canonical_solution":"    return x","libs":"[]","test":"import unittest\nclass TestCases(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(task_func(1), 1)\n"}
{"task_id":"BigCodeBench/1","complete_prompt":"def task_func(x):\n","instruct_prompt":"Return x again.","code_prompt":"def task_func(x):\n","canonical_solution":"    return x","libs":"[]","test":"import unittest\nclass TestCases(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(task_func(2), 2)\n"}`,
		"```python\ndef task_func(x):\n    return x\n```",
	},
}

// An evaluation on a published benchmark that is killed while it samples has the results of
// an undisturbed one. The server knows the answer for about half of the seeds.
func TestPublishedBenchmarksAreResumed(t *testing.T) {
	onlyThorough(t, "it kills three evaluations; TestEvaluationOfAServer kills one")
	t.Parallel()
	for name, benchmark := range published {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name+".jsonl"), []byte(benchmark.rows+"\n"), rundir.FileMode); err != nil {
				t.Fatal(err)
			}
			// serve answers until so many requests have come, and then none. reached is closed then.
			serve := func(answers int64) (address string, reached chan struct{}) {
				reached, once := make(chan struct{}), sync.Once{}
				return roleServer(t, events.RoleCode, &openaitest.Server{Fault: func(n int64, w http.ResponseWriter, r *http.Request) bool {
					if n > answers {
						once.Do(func() { close(reached) })
						io.Copy(io.Discard, r.Body) // the end of the client is noticed only afterwards
						<-r.Context().Done()
						return true
					}
					var request struct{ Seed int }
					if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
						t.Error(err)
					}
					content := "I cannot."
					if request.Seed%2 == 0 {
						content = benchmark.response
					}
					w.Header().Set("Content-Type", "application/json")
					json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]any{"content": content}}}})
					return true
				}}), reached
			}
			eval := func(address, run string) []string {
				return []string{"eval", address, name + ".jsonl", "--model", "small", "--samples", "8", "--name", run, "--sandboxes", "1", "--server-requests", "1"}
			}
			results := func(run string) (texts []string) {
				for _, path := range []string{rundir.Results(runPath(dir, run)), rundir.Samples(runPath(dir, run))} {
					text, err := os.ReadFile(path)
					if err != nil || len(text) == 0 {
						t.Fatalf("%s: %d bytes, %v", path, len(text), err)
					}
					texts = append(texts, string(text))
				}
				return texts
			}
			address, _ := serve(1 << 30)
			table := must(t, dir, eval(address, "whole")...)
			var sum evaluation.Summary
			if err := json.Unmarshal([]byte(must(t, dir, "eval", "--resume", "whole", "--json")), &sum); err != nil || sum.Answers != 8 || sum.Avg <= 0 || sum.Avg >= 1 {
				t.Errorf("%+v, %v; the table is\n%s", sum, err, table)
			}

			halting, reached := serve(2 + 5) // two probes and answers to a part of the problems
			killed := start(t, dir, eval(halting, "killed")...)
			select {
			case <-reached:
			case <-killed.ended:
				t.Fatal("it ended before the kill")
			case <-time.After(patience):
				t.Fatalf("fewer requests in %v", patience)
			}
			killed.signal(t, os.Kill)
			killed.wait(t)
			killed.alone(t)
			again := must(t, dir, "eval", "--resume", "killed", "--server", address)
			if again != table {
				t.Errorf("the table is\n%s\nwant\n%s", again, table)
			}
			if d := cmp.Diff(results("whole"), results("killed")); d != "" {
				t.Errorf("killed (+):\n%s", d)
			}
		})
	}
}
