package benchmark

import (
	"compress/gzip"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"codea1/consumers/execution/evalplus"
	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/mutants"
	"codea1/consumers/execution/probes"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
	"codea1/events/fenced"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pools.Main(m)) }

var pools = sandboxtest.Pools[int, *sandbox.Pool]{Skip: sandbox.ErrNotIsolated}

func open(t *testing.T) *sandbox.Pool {
	config := sandbox.Config{CallTimeout: time.Minute, JobTimeout: 2 * time.Minute, MemoryBytes: 1 << 30}
	return pools.Get(t, 0, func() (*sandbox.Pool, error) { return sandbox.Open(t.Context(), config) })
}

// The branches of a program with four of them were counted by hand: f(1) takes one, f(-1)
// two others, and f(0) the second and the fourth. Of the six lines, f(1) takes the first
// three, and f(-1) the first, the second and the next two.
func TestCoverage(t *testing.T) {
	pool := open(t)
	const truth = "def f(x):\n    if x > 0:\n        return 1\n    elif x:\n        return 2\n    return 3\n"
	test := func(call string, status events.TestStatus, wrong bool) events.ExecutedTest {
		return events.ExecutedTest{Call: call, Status: status, Wrong: wrong}
	}
	kept := events.StatusKept
	for _, c := range []struct {
		code  string
		tests []events.ExecutedTest
		want  Coverage
	}{
		{truth, nil, Coverage{4, 0, 6, 0}},
		{truth, []events.ExecutedTest{test("f(1)", kept, false), test("f(2)", kept, false)}, Coverage{4, 1, 6, 3}},
		{truth, []events.ExecutedTest{test("f(1)", kept, false), test("f(-1)", kept, false)}, Coverage{4, 3, 6, 5}},
		{truth, []events.ExecutedTest{test("f(1)", kept, false), test("f(-1)", kept, true)}, Coverage{4, 1, 6, 3}},
		{truth, []events.ExecutedTest{test("f(1)", kept, false), test("f()", events.StatusRaised, false), test("f(-1)", kept, false)}, Coverage{4, 1, 6, 3}}, // only two count
		{"def f(x): return x\n", []events.ExecutedTest{test("f(1)", kept, false)}, Coverage{0, 0, 1, 1}},
		{"def f(", nil, Coverage{}},
	} {
		got, err := coverage(t.Context(), pool, c.code, passing(&events.ExecutedSuite{Tests: c.tests}, 2))
		if err != nil || got != c.want {
			t.Errorf("%q, %v: %+v, %v; want %+v", c.code, c.tests, got, err, c.want)
		}
	}
}

// The counts of suites that were written in rounds were made by hand. The program has two
// branches and 8 mutants: 7 of > and not.
func TestJudgeInRounds(t *testing.T) {
	pool := open(t)
	const truth = "def f(x):\n    return max(x) if x > [] else None\n"
	for _, c := range []struct {
		responses string
		want      SuiteResult
	}{
		// A variable, a function that needs several statements, and a comparison that is
		// no equality. > as != survives; with >= and "is not", [] has no maximum.
		{"x = [1]\nassert f(x) == 1|def test_f():\n    x = []\n    assert f(x) is None|assert f([1, 2]) > 1", SuiteResult{Written: 3, Judged: mutants.Judged{Passed: 3, Mutants: 8, Survived: 1}, Coverage: Coverage{2, 2, 2, 2}}},
		// A test that fails, one that raises, and none.
		{"assert f([1]) == 2|def test_f():\n    assert g([]) is None|no", SuiteResult{Written: 2, Coverage: Coverage{2, 0, 2, 0}}},
		{"assert f([1]) == 1|assert f([1]) == 1|", SuiteResult{Written: 2, Judged: mutants.Judged{Passed: 2}, Coverage: Coverage{2, 1, 2, 2}}},
	} {
		var suite strings.Builder
		for response := range strings.SplitSeq(c.responses, "|") {
			test, call := fenced.FirstTest(response)
			suite.WriteString("```python\n" + test + call + "```\n")
		}
		group := Group{
			Problem: &events.Problem{ID: "p", EntryPoint: "f", Solution: truth}, Suites: []string{suite.String()},
			Executed: &events.CodeExecuted{Answers: []events.ExecutedAnswer{{Loads: true, Suites: []events.ExecutedSuite{{}}}}},
		}
		var got SuiteResult
		masked, err := Judge(t.Context(), pool, []Group{group}, 1, 3, probes.Mutants, func(string, int) bool { return false }, func(r SuiteResult) error { got = r; return nil })
		c.want.ID = "p"
		if d := cmp.Diff(c.want, got); err != nil || masked > 0 || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.responses, err, d)
		}
	}
}

// noSets knows every name as that of a file without a problem set.
type noSets struct{}

func (noSets) Read(context.Context, string) ([]*evalplus.Problem, bool, error) {
	return nil, true, os.ErrInvalid
}

// Files of UnLeakedTestBench are one JSON array, or have a row a line. The Test LLM sees
// the program, which runs with the imports that the benchmark adds.
func TestUnleaked(t *testing.T) {
	const rows = `{"task_id":"7","func_name":"g","prompt":"Adds.","code":"def f(): pass\ndef g(x: List):\n    return np.sum(x)"},
{"task_id":8,"prompt":"Nothing.","code":"def f(): pass"}`
	make := func(role events.Role, text string) (string, error) {
		path := filepath.Join(t.TempDir(), "ULT.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m := Maker{Sets: noSets{}, Role: role, Logger: slog.New(slog.DiscardHandler)}
		made, err := m.Make(t.Context(), []string{path})
		return string(made), err
	}
	const imports = `import datetime, math, os, random, re, string, traceback, warnings\nfrom typing import Any, Dict, FrozenSet, Generator, Iterable, List, Optional, Sequence, Set, Tuple, Union\n`
	want := `{"id":"ULT/7","source":"ULT","question":"Adds.","entry_point":"g","solution":"` + imports +
		`import numpy\nimport numpy as np\ndef f(): pass\ndef g(x: List):\n    return np.sum(x)\n","tests":["assert callable(g)"],"base_tests":0,` +
		`"buggy":[{"code":"def f(): pass\ndef g(x: List):\n    return np.sum(x)","bug_type":"none"}]}
{"id":"ULT/8","source":"ULT","question":"Nothing.","entry_point":"f","solution":"` + imports +
		`def f(): pass\n","tests":["assert callable(f)"],"base_tests":0,"buggy":[{"code":"def f(): pass","bug_type":"none"}]}
`
	for _, text := range []string{"[" + rows + "]", strings.ReplaceAll(rows, "},\n", "}\n")} {
		if got, err := make(events.RoleTest, text); err != nil || got != want {
			t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(want, got))
		}
	}
	const first = `{"task_id":"1","prompt":"p","code":"def f(): pass"}`
	const released = `{"task_id":"HumanEval/0","prompt":"p","entry_point":"f","canonical_solution":"x","base_input":[[1]]}`
	for message, text := range map[string]string{
		"ULT.jsonl:2: a task occurs twice: HumanEval/0":     released + "\n" + released,
		"ULT.jsonl:2: row 2: want the fields task_id":       first + "\n" + `{"task_id":"2","prompt":"p"}`,
		"ULT.jsonl:4: row 3: want the fields":               "[" + first + ",\n" + strings.Replace(first, "1", "2", 1) + "\n,\n{}]",
		"ULT.jsonl:3: row 2: json: cannot unmarshal":        "[\n" + first + ",\n7]",
		"ULT.jsonl:2: row 2: json: cannot unmarshal number": first + "\n" + `{"task_id":"2","prompt":3}`,
		"ULT.jsonl:2: row 2: unexpected EOF":                first + "\n" + `{"task_id":"2","prompt":"p`,
		"ULT.jsonl:2: row 2: task_id 1 occurs twice":        first + "\n" + first,
		"row 2: want":                                          first + "\n" + strings.Replace(first, `"1"`, `{"a": 1}`, 1),
		"evaluate role test on it":                             "[" + rows + "]",
		"task_id 1: field code defines no function":            `[{"task_id":"1","prompt":"p","code":"x = 1"}]`,
		"neither a release file of EvalPlus nor a problem set": `[{"task_id":"1","prompt":"p"}]`,
	} {
		if _, err := make(events.RoleCode, text); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want %s", text, err, message)
		}
	}
}

// A small file that unpacks to a large one is refused before it fills the memory.
func TestUnleakedBomb(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bomb.json.gz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	for range maxUnleakedBytes>>20 + 1 {
		if _, err := zipped.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(zipped.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	m := Maker{Role: events.RoleTest}
	if _, err := m.readUnleaked(path, "bomb"); !errors.Is(err, errNotUnleaked) || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}
