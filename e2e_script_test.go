package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"codea1/gpuworker/checkpoint"
	"codea1/gpuworker/tiny"
)

// The scripts in testdata/script hold command lines and their results.
//
// Each script has the settings of a short training in small.yaml.
//
//	refused PATTERN ARGS  runs codea1, which fails with one sentence that matches
//	completed             makes runs/r, a completed run of 3 steps that keeps one checkpoint
//	occupy NAME           takes a free port and puts its number into the environment
//	checkpoint ROLE DIR   writes a shipped checkpoint
//	cut FILE              drops the second half of a file
//	flip FILE             changes one bit in the middle of a file
func TestScripts(t *testing.T) {
	codea1, err := exec.LookPath("codea1")
	if err != nil {
		t.Fatal(err)
	}
	var out, stderr buffer
	if code := run(t.Context(), []string{"config"}, &out, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	small := out.String()
	for _, line := range strings.Split(strings.Join(train("--steps", "1")[1:], " "), " --") {
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "--"), " ")
		if value == "" {
			value = "true"
		}
		small = regexp.MustCompile(`(?m)^`+key+`: .*$`).ReplaceAllLiteralString(small, key+": "+value)
	}
	completed := completedRun(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv(envPrefix+"SANDBOXES", "1") // the start of a sandbox costs more than most commands
			return os.WriteFile(filepath.Join(e.WorkDir, "small.yaml"), []byte(small), 0o644)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"refused": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: refused PATTERN ARGS")
				}
				err := ts.Exec(codea1, args[1:]...)
				var exit *exec.ExitError
				if !errors.As(err, &exit) || !slices.Contains([]int{exitFailed, exitUsage, exitNegative}, exit.ExitCode()) {
					ts.Fatalf("want the exit code of a failure, have %v", err)
				}
				sentence, err := oneSentence(ts.ReadFile("stderr"))
				ts.Check(err)
				if !regexp.MustCompile(args[0]).MatchString(sentence) {
					ts.Fatalf("%q does not match %q", sentence, args[0])
				}
			},
			"completed": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(os.CopyFS(ts.MkAbs("."), os.DirFS(completed)))
			},
			"occupy": func(ts *testscript.TestScript, _ bool, args []string) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				ts.Check(err)
				ts.Defer(func() { l.Close() })
				_, port, err := net.SplitHostPort(l.Addr().String())
				ts.Check(err)
				ts.Setenv(args[0], port)
			},
			"checkpoint": func(ts *testscript.TestScript, _ bool, args []string) {
				files, err := tiny.Checkpoint(args[0])
				ts.Check(err)
				ts.Check(checkpoint.CreateInitial(files, ts.MkAbs(args[1])))
			},
			"cut": func(ts *testscript.TestScript, _ bool, args []string) {
				path := ts.MkAbs(args[0])
				info, err := os.Stat(path)
				ts.Check(err)
				ts.Check(os.Truncate(path, info.Size()/2))
			},
			"flip": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(flip(ts.MkAbs(args[0])))
			},
		},
	})
}

// flip changes one bit in the middle of a file.
func flip(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text[len(text)/2] ^= 1
	return os.WriteFile(path, text, 0o644)
}

// shared returns a file of the real data sets, which may be beside the repository.
func shared(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "shared", "data", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skipf("no shared/data/%s beside the repository", name)
	return ""
}

// The scripts check a smaller set.
func TestHumanEval(t *testing.T) {
	if !thorough() {
		t.Skip("CODEA1_TEST_THOROUGH=1 runs it")
	}
	t.Parallel()
	out := must(t, t.TempDir(), "problems", "check", shared(t, "humaneval.jsonl.gz"))
	if want := "164/164 problems pass\n"; out != want {
		t.Errorf("have %q, want %q", out, want)
	}
}
