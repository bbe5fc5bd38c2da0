package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/gpuworker/openai/openaitest"
	"codea1/gpuworker/tiny"
)

// modelServer serves the embedded Code LLM under the name small.
func modelServer(t *testing.T, server *openaitest.Server) (address string) {
	t.Helper()
	return roleServer(t, events.RoleCode, server)
}

// roleServer serves the embedded model of a role under the name small.
func roleServer(t *testing.T, role events.Role, server *openaitest.Server) (address string) {
	t.Helper()
	files, err := tiny.Checkpoint(string(role))
	if err != nil {
		t.Fatal(err)
	}
	engine, err := tiny.OpenFS(files)
	if err != nil {
		t.Fatal(err)
	}
	server.Sampler, server.Model = engine, "small"
	listening := httptest.NewServer(server)
	t.Cleanup(func() { listening.Close(); engine.Close() })
	return listening.URL + "/v1"
}

// The evaluation of a server has the results of the checkpoint behind it, also after it
// was killed in the middle and went on with the server at another address, which
// answers at first with failures. What was sampled is not sampled again, and the key is in no file.
func TestEvaluationOfAServer(t *testing.T) {
	t.Parallel()
	const key = "sk-a-secret-of-the-test"
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "key")
	if err := os.WriteFile(keyFile, []byte(key), rundir.SecretMode); err != nil {
		t.Fatal(err)
	}
	heldout, err := filepath.Abs("testdata/heldout.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	eval := func(model, name string, more ...string) []string {
		return append(append([]string{"eval", model}, more...), heldout, "--preset", "tiny", "--greedy", "--name", name, "--call-timeout", "5s", "--sandboxes", "1")
	}
	table := must(t, dir, eval("builtin", "local")...)

	first := &openaitest.Server{Key: key, Fault: func(n int64, _ http.ResponseWriter, r *http.Request) bool {
		if n < 4 { // two probes and a problem
			return false
		}
		io.Copy(io.Discard, r.Body) // the end of the client is noticed only afterwards
		<-r.Context().Done()
		return true
	}}
	address := modelServer(t, first)
	killed := start(t, dir, eval(address, "remote", "--model", "small", "--server-key-file", keyFile)...)
	killed.tap(t, func(_ int, m *events.Message) bool { return m.Type != events.TypeCodeSampled })
	killed.signal(t, os.Kill)
	killed.wait(t)
	killed.alone(t)

	second := &openaitest.Server{Key: key, Fault: func(n int64, w http.ResponseWriter, _ *http.Request) bool {
		if n == 2 { // after the probe
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return n == 2
	}}
	moved := modelServer(t, second)
	resumed := start(t, dir, "eval", "--resume", "remote", "--server", moved)
	if code := resumed.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if got, want := resumed.stdout.String(), "small at "+moved+"\n"+table; got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	sameEvaluation(t, dir)
	if n := second.Requests(); n != 3 {
		t.Errorf("%d requests after the kill, want a probe, a failure and the problem that was left", n)
	}
	if log := resumed.stderr.String(); !strings.Contains(log, "503 Service Unavailable") || !strings.Contains(log, "answers again") {
		t.Errorf("the outage is not in the log:\n%s", log)
	}
	if out := must(t, dir, "replay", "verify", "remote"); !strings.Contains(out, " intact, ends with") {
		t.Error(out)
	}
	config, err := os.ReadFile(rundir.Config(runPath(dir, "remote")))
	if err != nil || !strings.Contains(string(config), "server: "+address) || !strings.Contains(string(config), "model: small") {
		t.Errorf("%v, the configuration has no server and no model:\n%s", err, config)
	}
	err = filepath.WalkDir(runPath(dir, "remote"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(key)) {
			t.Errorf("%s has the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if all := resumed.stderr.String() + killed.stderr.String(); strings.Contains(all, key) {
		t.Errorf("the key is in the log:\n%s", all)
	}
}

// sameEvaluation compares the results and samples of run remote, of a server, with those
// of run local, of its model.
func sameEvaluation(t *testing.T, dir string) {
	t.Helper()
	for _, file := range []func(string) string{rundir.Results, rundir.Samples} {
		want, err := os.ReadFile(file(runPath(dir, "local")))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file(runPath(dir, "remote")))
		if d := cmp.Diff(string(want), string(got)); err != nil || d != "" {
			t.Errorf("%v, the server (+) differs from its model:\n%s", err, d)
		}
	}
}

// What a model server cannot do is refused before anything is made.
func TestAServerIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := &openaitest.Server{}
	address := modelServer(t, server)
	eval := func(more ...string) []string {
		return append([]string{"eval", address, "builtin:heldout"}, more...)
	}
	for want, args := range map[string][]string{
		"OpenAI's interface takes none":                      train("--sampler", "openai", "--server", address, "--model", "small"),
		"--sampler vllm needs --engine torch":                train("--sampler", "vllm"),
		"at --temperature 1 or without --top-p":              train("--sampler", "vllm", "--engine", "torch", "--temperature", "0.7", "--top-p", "0.9"),
		"name the model of the server with --model":          eval(),
		"the model other does not exist":                     eval("--model", "other"),
		"--test-model is for a checkpoint":                   eval("--model", "small", "--test-model", "builtin"),
		"--server: name the address of the server in place":  {"eval", "builtin", "builtin:heldout", "--server", address},
		"--model is for the address of a server in place of": {"eval", "builtin", "builtin:heldout", "--model", "small"},
	} {
		if sentence := refused(t, dir, args...); !strings.Contains(sentence, want) {
			t.Errorf("%q, want %q", sentence, want)
		}
	}
	if n := server.Requests(); n != 1 {
		t.Errorf("%d requests, want the probe of the other model", n)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v are left behind", err, entries)
	}
}

// The suites of a Test LLM on a server have the figures of those of the checkpoint behind
// it, on the ground truths and on their mutants.
func TestEvaluationOfTestsOfAServer(t *testing.T) {
	onlyThorough(t, "TestEvaluationOfAServer has a server, the script of eval has suites")
	t.Parallel()
	dir := t.TempDir()
	heldout, err := filepath.Abs("testdata/heldout.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	eval := func(model, name string, more ...string) []string {
		return append(append([]string{"eval", model}, more...), heldout, "--role", "test", "--preset", "tiny", "--greedy", "--tests", "3", "--name", name,
			"--call-timeout", "60s", "--job-timeout", "120s", "--sandboxes", "1")
	}
	want := must(t, dir, eval("builtin", "local")...)
	address := roleServer(t, events.RoleTest, &openaitest.Server{})
	if got := must(t, dir, eval(address, "remote", "--model", "small")...); got != "small at "+address+"\n"+want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	var lines [2][]string
	for i, name := range []string{"local", "remote"} {
		text, err := os.ReadFile(rundir.Tests(runPath(dir, name)))
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = strings.Split(string(text), "\n")
		slices.Sort(lines[i]) // suites are judged several at a time
	}
	if d := cmp.Diff(lines[0], lines[1]); d != "" || !strings.Contains(strings.Join(lines[0], ""), `"branches":`) {
		t.Errorf("the server (+) differs from its model:\n%s", d)
	}
}

// A published benchmark is sampled from a server: the answers are read and graded in its
// own way, the samples can be graded again, and a finished evaluation can be printed
// again.
func TestEvaluationOnAPublishedBenchmark(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	benchmark := filepath.Join(dir, "crux.jsonl")
	rows := `{"id":"s0","code":"def f(x):\n    return x * 2","input":"21","output":"42"}` + "\n" + `{"id":"s1","code":"def f(s):\n    return s[::-1]","input":"'ab'","output":"'ba'"}` + "\n"
	if err := os.WriteFile(benchmark, []byte(rows), rundir.FileMode); err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{ // by the end of the question; the other one gets no answer
		"assert f(21) == ??": "assert f(21) == 6 * 7\n[/ANSWER]",
		"assert f(??) == 42": "Half of it.\n[ANSWER]\nassert f(21) == 42\n[/ANSWER]",
		"assert f(??) == 'b": "assert f('ba') == 'ba'\n[/ANSWER]",
	}
	server := &openaitest.Server{Fault: func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return false
		}
		text := "?"
		for question, answer := range answers {
			if strings.Contains(string(body), question) {
				text = answer
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{
			"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text},
		}}})
		return true
	}}
	address := modelServer(t, server)
	table := must(t, dir, "eval", address, "--model", "small", benchmark, "--samples", "2", "--name", "e", "--call-timeout", "60s", "--job-timeout", "120s", "--sandboxes", "1")
	results := filepath.Join(runPath(dir, "e"), "results.jsonl")
	before, err := os.ReadFile(results)
	if err != nil || strings.Count(string(before), "\n") != 4 || !strings.Contains(table, " 50.0%") {
		t.Errorf("%v, the table is\n%s\nand the results are\n%s", err, table, before)
	}
	if again := must(t, dir, "eval", "--resume", "e"); again != table {
		t.Errorf("printed again:\n%s\nwant\n%s", again, table)
	}
	if after, err := os.ReadFile(results); err != nil || !bytes.Equal(after, before) {
		t.Errorf("%v, the results changed to\n%s", err, after)
	}
	if graded := must(t, dir, "eval", benchmark, "--samples-file", rundir.Samples(runPath(dir, "e")), "--call-timeout", "60s", "--job-timeout", "120s", "--sandboxes", "1"); !strings.Contains(graded, " 50.0%") {
		t.Errorf("the samples graded again:\n%s", graded)
	}
	if out := must(t, dir, "replay", "verify", "e"); !strings.Contains(out, " intact, ends with") {
		t.Error(out)
	}
}
