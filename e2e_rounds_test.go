package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/gpuworker/openai/openaitest"
)

// Suites that are written in rounds have the same figures from a checkpoint and from a
// server with it, also after the evaluation was killed between two rounds: the conversation
// begins again. The embedded model writes the same tests in rounds as in one response.
func TestEvaluationInRounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	heldout, err := filepath.Abs("testdata/heldout.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	eval := func(model, name string, more ...string) []string {
		return append([]string{"eval", model, heldout, "--role", "test", "--preset", "tiny", "--greedy", "--name", name, "--call-timeout", "5s", "--sandboxes", "1"}, more...)
	}
	results := func(name string) string {
		text, err := os.ReadFile(rundir.Tests(runPath(dir, name)))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "")
	}
	table := must(t, dir, eval("builtin", "local", "--rounds", "3")...)
	if lines := strings.Split(table, "\n"); len(lines) != 4 || !strings.Contains(lines[1], "PASS@3") || !strings.HasPrefix(strings.TrimSpace(lines[2]), "2 ") {
		t.Errorf("the table is\n%s", table)
	}
	if thorough() {
		must(t, dir, eval("builtin", "whole", "--tests", "3")...)
		if d := cmp.Diff(results("whole"), results("local")); d != "" {
			t.Errorf("in rounds (+):\n%s", d)
		}
	}

	// Two probes and three rounds of one problem, or one round of both and half of the next.
	const answered = 2 + 3 - 1
	between, once := make(chan struct{}), sync.Once{}
	address := roleServer(t, events.RoleTest, &openaitest.Server{Fault: func(n int64, _ http.ResponseWriter, r *http.Request) bool {
		if n <= answered {
			return false
		}
		once.Do(func() { close(between) })
		io.Copy(io.Discard, r.Body) // the end of the client is noticed only afterwards
		<-r.Context().Done()
		return true
	}})
	killed := start(t, dir, eval(address, "remote", "--rounds", "3", "--model", "small")...)
	select {
	case <-between:
	case <-killed.ended:
		t.Fatal("it ended before the last round")
	case <-time.After(patience):
		t.Fatalf("no request in %v", patience)
	}
	killed.signal(t, os.Kill)
	killed.wait(t)
	killed.alone(t)

	second := &openaitest.Server{}
	moved := roleServer(t, events.RoleTest, second)
	if got, want := must(t, dir, "eval", "--resume", "remote", "--server", moved), "small at "+moved+"\n"+table; got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	if d := cmp.Diff(results("local"), results("remote")); d != "" {
		t.Errorf("the server (+):\n%s", d)
	}
	if n := second.Requests(); n != 1+2*3 {
		t.Errorf("%d requests after the kill, want a probe and three rounds of two problems", n)
	}
	if out := must(t, dir, "replay", "verify", "remote"); !strings.Contains(out, " intact, ends with") {
		t.Error(out)
	}
}
