package problems

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

// pythonChecker runs each test in a Python process of its own, without a
// sandbox.
type pythonChecker struct{ python string }

func newPythonChecker(t *testing.T) pythonChecker {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("the project needs Python 3: %v", err)
	}
	return pythonChecker{python}
}

func (c pythonChecker) Check(ctx context.Context, code, _ string, tests []string) ([]events.GoldenVerdict, error) {
	verdicts := make([]events.GoldenVerdict, len(tests))
	for i, test := range tests {
		verdicts[i].Verdict = events.VerdictPass
		output, err := exec.CommandContext(ctx, c.python, "-I", "-c", code+"\n"+test).CombinedOutput()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			lines := strings.Split(strings.TrimSpace(string(output)), "\n")
			verdicts[i] = events.GoldenVerdict{Verdict: events.VerdictFail, Detail: lines[len(lines)-1]}
		}
	}
	return verdicts, nil
}

// codea1 runs a command line of the problems command.
func codea1(t *testing.T, checker Checker, args ...string) (stdout, logged string, err error) {
	t.Helper()
	var command struct {
		Command `embed:""`
		Corpus  CorpusCommand `cmd:""`
	}
	parser, err := kong.New(&command)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	parsed.BindTo(t.Context(), (*context.Context)(nil))
	parsed.BindTo(&out, (*io.Writer)(nil))
	parsed.Bind(slog.New(slog.NewTextHandler(&log, nil)))
	parsed.BindTo(checker, (*Checker)(nil))
	err = parsed.Run()
	return out.String(), log.String(), err
}

func line(t *testing.T, id, solution string, tests ...string) string {
	t.Helper()
	text, err := json.Marshal(Problem{ID: id, Question: "Add.", EntryPoint: "add", Solution: solution, Tests: tests, Difficulty: "easy"})
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

const add = "def add(a, b):\n    return a + b"

func TestCheck(t *testing.T) {
	checker := newPythonChecker(t)
	good := line(t, "good", add, "assert add(1, 2) == 3", "x = add(2, 2)\nassert x == 4")
	path := writeFile(t, "good.jsonl", good)
	stdout, _, err := codea1(t, checker, "check", path)
	if err != nil || stdout != "1/1 problems pass\n" {
		t.Errorf("a good set prints %q, %v", stdout, err)
	}

	path = writeFile(t, "mixed.jsonl", good+
		line(t, "wrong", "def add(a, b):\n    return a", "assert add(1, 0) == 1", "assert add(1, 2) == 3")+
		line(t, "untested", add)+
		"nonsense\n")
	stdout, logged, err := codea1(t, checker, "check", "--json", "--on-bad-row", "skip", path)
	if !errors.Is(err, ErrCheckFailed) {
		t.Errorf("a set with failures ends with %v", err)
	}
	var report Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	want := Report{Set: path, Problems: 3, Passed: 1, SkippedRows: 1, Failures: []Failure{
		{ID: "wrong", Test: "assert add(1, 2) == 3", Reason: "fail: AssertionError"},
		{ID: "untested", Reason: "has no golden tests"},
	}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if !strings.Contains(logged, "row 4: ") {
		t.Errorf("the bad row is not logged: %s", logged)
	}

	path = writeFile(t, "hangs.jsonl", line(t, "hangs", "while True: pass", "assert add(1, 2) == 3"))
	stdout, _, err = codea1(t, checker, "check", "--timeout", "200ms", path)
	if want := "hangs: took longer than 200ms\n0/1 problems pass\n"; !errors.Is(err, ErrCheckFailed) || stdout != want {
		t.Errorf("a ground truth that hangs prints %q, %v", stdout, err)
	}
}

// deadSandbox fails as a sandbox without Python would.
type deadSandbox struct{ calls int }

var errDead = errors.New("no sandbox")

func (d *deadSandbox) Check(context.Context, string, string, []string) ([]events.GoldenVerdict, error) {
	d.calls++
	return nil, errDead
}

func TestCheckStopsWhenTheSandboxFails(t *testing.T) {
	var set strings.Builder
	for i := range 100 {
		set.WriteString(line(t, fmt.Sprint(i), add, "assert add(1, 2) == 3"))
	}
	var dead deadSandbox
	_, _, err := codea1(t, &dead, "check", "--workers", "1", writeFile(t, "set.jsonl", set.String()))
	if !errors.Is(err, errDead) || errors.Is(err, ErrCheckFailed) {
		t.Errorf("a dead sandbox ends with %v", err)
	}
	if dead.calls != 1 {
		t.Errorf("a dead sandbox is called %d times", dead.calls)
	}
}

func TestCheckStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	command := CheckCommand{Timeout: time.Minute}
	set := []Problem{{ID: "1", Tests: []string{"assert True"}}}
	if _, err := command.check(ctx, &bytes.Buffer{}, set, &deadSandbox{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled check ends with %v", err)
	}
}

func TestList(t *testing.T) {
	path := writeFile(t, "set.jsonl", line(t, "one", add)+line(t, "two", add, "assert True")+
		strings.Replace(line(t, "three", add), "easy", "hard", 1))
	stdout, _, err := codea1(t, nil, "list", path, "--difficulty", "EASY")
	if err != nil {
		t.Fatal(err)
	}
	want := "ID   SOURCE  DIFFICULTY  TESTS  QUESTION\none          easy        0      Add.\ntwo          easy        1      Add.\n"
	if diff := cmp.Diff(want, stdout); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	// The JSON of list is a set again.
	stdout, _, err = codea1(t, nil, "list", "--json", BuiltinHeldOut)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := ReadAll(t.Context(), writeFile(t, "again.jsonl", stdout), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(builtinSet(t, BuiltinHeldOut), again); diff != "" {
		t.Errorf("the built-in set does not read back:\n%s", diff)
	}
}

func TestShow(t *testing.T) {
	path := writeFile(t, "set.jsonl", line(t, "one", add, "assert add(1, 2) == 3"))
	stdout, _, err := codea1(t, nil, "show", "one", "--set", path)
	want := `one (, easy)

Add.

Entry point

    add

Ground truth

    def add(a, b):
        return a + b

Golden tests (1)

    assert add(1, 2) == 3
`
	if diff := cmp.Diff(want, stdout); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, _, err := codea1(t, nil, "show", "heldout-0001"); err != nil {
		t.Errorf("a built-in problem is not found by its ID alone: %v", err)
	}
	if _, _, err := codea1(t, nil, "show", "nobody"); !errors.Is(err, ErrNoProblem) {
		t.Errorf("an unknown ID ends with %v", err)
	}
}

func TestCorpusCommand(t *testing.T) {
	toStdout, _, err := codea1(t, nil, "corpus", "--role", "test", "--rows", "50")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if _, _, err := codea1(t, nil, "corpus", "--role", "test", "--rows", "50", "--out", path); err != nil {
		t.Fatal(err)
	}
	var rows []Row
	for text := range strings.Lines(toStdout) {
		var row Row
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if diff := cmp.Diff(corpusRows(t, "test", 1, 50, Mix{}), rows); diff != "" {
		t.Errorf("the command's rows (-want +got):\n%s", diff)
	}
	if _, _, err := codea1(t, nil, "corpus", "--role", "code", "--out", t.TempDir()); err == nil {
		t.Error("writing to a folder succeeds")
	}
}
