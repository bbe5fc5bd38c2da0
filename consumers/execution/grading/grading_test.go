package grading

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
)

const gradingProblems = `{"id":"double","entry_point":"f","solution":"","tests":["assert f(1) == 2","assert f(2) == 4"]}

{"id":"is","entry_point":"f","tests":["assert f(1) is None"]}
`

var gradingAnswers = []Answer{
	{"double", "def f(x): return 2 * x"},
	{"double", "def f(x): return 2"},
	{"is", "def f(x): pass"},
	{"double", "def g(x): return 2"},
	{"double", "def f(x):\n while x == 2: pass\n return 2"},
}

func gradeFiles(t *testing.T) *Command {
	t.Helper()
	directory := t.TempDir()
	c := &Command{
		Problems: filepath.Join(directory, "problems.jsonl"), Answers: filepath.Join(directory, "answers.jsonl"), Out: filepath.Join(directory, "grades.jsonl"),
		Flags: sandbox.Flags{SandboxLevel: "open", Sandboxes: 2, CallTimeout: sandboxtest.CallTimeout, JobTimeout: 10 * time.Second, MemoryMiB: 256},
	}
	var lines []byte
	for _, a := range gradingAnswers {
		line, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	for path, text := range map[string]string{c.Problems: gradingProblems, c.Answers: string(lines)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestCommand(t *testing.T) {
	c := gradeFiles(t)
	c.Tests = true
	var out bytes.Buffer
	if err := c.Run(t.Context(), &out, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if want := "    test 0    pass     \n    test 1    fail     returned 2\n"; !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want %s", &out, want)
	}
	lines := slices.DeleteFunc(strings.Split(out.String(), "\n"), func(line string) bool { return strings.HasPrefix(line, "    test ") })
	for i, want := range []string{"PROBLEM", "2/2", "1/2    test 1: fail returned 2", "1/1", "0/2    does not load: NameError", "1/2    test 1: timeout", "", "5 answers: 80.0% load, 40.0% pass all tests, mean pass rate 60.0%"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %q, want %q", i, lines[i], want)
		}
	}
	whole, err := os.ReadFile(c.Out)
	if err != nil {
		t.Fatal(err)
	}
	// Stopped in the middle of the third line, it goes on there.
	third := strings.Join(strings.SplitAfter(string(whole), "\n")[:2], "") + `{"id":"is","ans`
	if err := os.WriteFile(c.Out, []byte(third), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	c.JSON = true
	if err := c.Run(t.Context(), &out, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n"); got != 3 {
		t.Errorf("%d graded again, want 3", got)
	}
	resumed, err := os.ReadFile(c.Out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(resumed, whole) {
		t.Errorf("got\n%s\nwant\n%s", resumed, whole)
	}
}

func TestGradeNamesBadInput(t *testing.T) {
	for name, change := range map[string]func(*Command) (path, text string){
		`answers.jsonl:1: there is no problem "none"`: func(c *Command) (string, string) {
			return c.Answers, `{"id":"none","code":""}`
		},
		"answers.jsonl:2: want a JSON object with id and code: unexpected end of JSON input": func(c *Command) (string, string) { return c.Answers, "\n{" },
		"answers.jsonl:2: want both id and code": func(c *Command) (string, string) {
			return c.Answers, `{"id":"is","code":""}` + "\n" + `{"id":"is","solution":""}`
		},
		"problems.jsonl:1: want a JSON object with id, entry_point and tests": func(c *Command) (string, string) { return c.Problems, `{"id":1}` },
		"problems.jsonl:1: a problem without an id":                           func(c *Command) (string, string) { return c.Problems, "{}" },
		"problem a has no tests":                                              func(c *Command) (string, string) { return c.Problems, `{"id":"a"}` },
		"problem a is a predict problem": func(c *Command) (string, string) {
			return c.Problems, `{"id":"a","tests":["assert f() == 7"],"predict":[{"kind":"output","accepted":["7"]}]}`
		},
		"grades.jsonl:1: not a line of grades": func(c *Command) (string, string) { return c.Out, "x\n" },
	} {
		c := gradeFiles(t)
		path, text := change(c)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := c.Run(t.Context(), &bytes.Buffer{}, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

// TestGradeStops: an interrupted grading says how it goes on, and does.
func TestGradeStops(t *testing.T) {
	c := gradeFiles(t)
	ctx, stop := context.WithCancel(t.Context())
	stopAtOnce := writerFunc(func(p []byte) {
		if bytes.HasPrefix(p, []byte("double")) {
			stop()
		}
	})
	err := c.Run(ctx, stopAtOnce, slog.New(slog.DiscardHandler))
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "of 5 answers; the same command continues there") {
		t.Errorf("got %v", err)
	}
	var out bytes.Buffer
	if err := c.Run(t.Context(), &out, slog.New(slog.DiscardHandler)); err != nil || !strings.Contains(out.String(), "5 answers: 80.0% load") {
		t.Errorf("got %v, %s", err, &out)
	}
}

type writerFunc func([]byte)

func (w writerFunc) Write(p []byte) (int, error) { w(p); return len(p), nil }
