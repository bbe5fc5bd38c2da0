package published

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pools.Main(m)) }

var pools = sandboxtest.Pools[int, *sandbox.Pool]{Skip: sandbox.ErrNotIsolated}

// grader has generous limits for a busy machine.
func grader(t *testing.T) *Grader {
	t.Helper()
	config := sandbox.Config{CallTimeout: time.Minute, JobTimeout: 2 * time.Minute, MemoryBytes: 1 << 30}
	return NewGrader(pools.Get(t, 0, func() (*sandbox.Pool, error) { return sandbox.Open(t.Context(), config) }))
}

// impatient is a Grader for answers that never end.
func impatient(t *testing.T) *Grader {
	t.Helper()
	config := sandbox.Config{CallTimeout: time.Second, JobTimeout: 2 * time.Second, MemoryBytes: 1 << 30}
	g := NewGrader(pools.Get(t, 1, func() (*sandbox.Pool, error) { return sandbox.Open(t.Context(), config) }))
	g.each = 500 * time.Millisecond
	return g
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// row returns a line with fields and their values in turn.
func row(fields ...string) string {
	values := map[string]string{}
	for i := 0; i < len(fields); i += 2 {
		values[fields[i]] = fields[i+1]
	}
	line, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	return string(line) + "\n"
}

// verdicts grades answers to the task with an ID.
func verdicts(t *testing.T, g *Grader, file, id string, answers ...string) (got []Verdict) {
	t.Helper()
	tasks, err := ReadFile(write(t, "f.jsonl", file))
	if err != nil {
		t.Fatal(err)
	}
	err = g.Grade(t.Context(), tasks, map[string][]string{id: answers}, func(r *Result) error {
		if r.Failure != "" || len(r.Missing) > 0 || r.Task.ID() != id {
			t.Errorf("%s: failure %q, missing modules %q", r.Task.ID(), r.Failure, r.Missing)
		}
		got = r.Verdicts
		return nil
	})
	if err != nil || len(got) != len(answers) {
		t.Fatalf("%s: %d verdicts for %d answers, %v", id, len(got), len(answers), err)
	}
	return got
}

// check wants the answers before the empty one to pass, and those after it to fail.
func check(t *testing.T, g *Grader, file, id string, answers ...string) []Verdict {
	t.Helper()
	right := true
	var given []string
	var want []bool
	for _, a := range answers {
		if a == "" {
			right = false
			continue
		}
		given, want = append(given, a), append(want, right)
	}
	got := verdicts(t, g, file, id, given...)
	for i, v := range got {
		if v.Passed != want[i] || v.Passed != (v.Reason == "") {
			t.Errorf("%s: %q passes: %v (%s)", id, given[i], v.Passed, v.Reason)
		}
	}
	return got
}

func TestCruxEval(t *testing.T) {
	g := grader(t)
	file := row("id", "s0", "code", "def f(x, n):\n    return [x] * n", "input", "'a', 2", "output", "['a', 'a']")
	got := check(t, g, file, "s0/output", `['a', 'a']`, `["a"] * 2`, `['a',  'a'] # the value`, "",
		`['a']`, `('a', 'a')`, `f('a', 2)`, `exit(0)`, `['a'`, `['a'])`+"\nassert f(0) == (1", `['a', 'a'] == ['a', 'a']`,
		`type('A', (), {'__eq__': lambda *a: True})()`, `__import__('os')._exit(0)`)
	// Answers with one value vote for it together.
	if got[0].Behaviour != got[1].Behaviour || got[0].Behaviour == got[3].Behaviour {
		t.Errorf("behaviours: %+v", got)
	}
	check(t, g, file, "s0/input", `'a', 2`, `f('a', 2)`, `f('a', n=1 + 1)`, `x='a', n=2`, "",
		`'a', 3`, `f('b', 2)`, `['a', 'a']`, `f('a', 1) == 0 or f('a', 2)`, `f('a', 2)) == (['a', 'a']`, `f`, `f('a', 2) or 1`,
		`f(1, 2) if 0 else ['a', 'a']`, `f(type('A', (list,), {'__mul__': lambda *a: 1})(), 2)`)
}

func TestCruxEvalWithoutArguments(t *testing.T) {
	check(t, grader(t), row("id", "s1", "code", "def f():\n    return 1", "input", "", "output", "1"), "s1/input", "f()", "", "f(1)")
}

// live returns a row of LiveCodeBench. The tests are input and output in turn, of which
// only the first is public.
func live(t *testing.T, kind, method string, tests ...string) string {
	t.Helper()
	var cases []liveCase
	for i := 0; i < len(tests); i += 2 {
		cases = append(cases, liveCase{tests[i], tests[i+1], kind})
	}
	public, err := json.Marshal(cases[:1])
	if err != nil {
		t.Fatal(err)
	}
	private, err := json.Marshal(cases[1:])
	if err != nil {
		t.Fatal(err)
	}
	return row("question_id", "q1", "question_content", "?", "public_test_cases", string(public), "private_test_cases", pickled(t, private),
		"metadata", `{"func_name": "`+method+`"}`)
}

// pickled packs a text as LiveCodeBench does: protocol 4 without frames.
func pickled(t *testing.T, text []byte) string {
	t.Helper()
	data := append([]byte{0x80, 4, 'X', byte(len(text)), byte(len(text) >> 8), 0, 0}, text...)
	data = append(data, 0x94, '.')
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestLiveCodeBenchFunctions(t *testing.T) {
	file := live(t, "functional", "add", "1\n[2, 3]", "[3, 4]", "0\n[]", "[]")
	head := "class Solution:\n    def add(self, n: int, xs: List[int]):\n        "
	check(t, grader(t), file, "q1", head+"return [x + n for x in xs]", head+"return tuple(map(lambda x: x + n, xs))", "def add(n, xs):\n    return [x + n for x in xs]\n", "",
		head+"return [3, 4]", head+"sys.exit(0)", head+"import os; os._exit(0)", head+"print([3, 4])", head+"return None if xs else []", "x = ", "y = 1",
		head+"import os\n        os.fork()\n        return xs")
	check(t, impatient(t), file, "q1", "", head+"while True: pass", head+"while True: print('x' * 100)")
}

func TestLiveCodeBenchPrograms(t *testing.T) {
	file := live(t, "stdin", "", "1 2\n", "3\n", "2 5\n", "7.0\n")
	check(t, grader(t), file, "q1", "a, b = map(int, input().split())\nprint(a + b)", "print(sum(map(int, sys.stdin.read().split())), ' ')",
		"print(sum(map(int, input().split())))\nsys.exit(0)",
		// A child that lives on changes nothing.
		"import os, time\nprint(sum(map(int, input().split())), flush=True)\nif not os.fork():\n    time.sleep(600)\n", "",
		"print(3)", "print(7)", "sys.exit(0)", "print(3, 7)", "print('3\\n7')", "import os\nos._exit(0)", "print(sum(map(int, input().split())))\nraise SystemExit(1)",
		"print(sum(map(int, input().split())))\nprint('more')", "x = ",
		"print(sum(map(int, input().split())))\nprint(' ' * 1000000)")
	check(t, impatient(t), file, "q1", "", "while True: print('x' * 1000)", "while True: pass")
}

func TestSameOutput(t *testing.T) {
	for _, c := range []struct {
		got, want string
		same      bool
	}{
		{"1\n", "1", true},
		{" a \n b\n\n", "a\nb", true},
		{"a\n\nb", "a\nb", false},
		{"a  b", "a b", false},
		{"1.50  2", "1.5 2.0", true},
		{"1e3 -0.0 +5 .5", "1000 0 5 0.50", true},
		{"100", "1e2", true},
		{"0.1", "0.10000000000000000001", false},
		{"1e999999999999", "1e999999999999", true},
		{"1e999999999999", "1", false},
		{"1e9999999999999999999", "1", false},
		{"1 2", "1 2 3", false},
		{"nan", "1", false},
		{"1.2.3", "1.23", false},
		{"", "1", false},
		{"-1", "1", false},
	} {
		if same := sameOutput(c.got, c.want); same != c.same {
			t.Errorf("%q and %q: same is %v", c.got, c.want, same)
		}
	}
}

// bigCodeRow returns a row of BigCodeBench.
func bigCodeRow(libs string) string {
	return row("task_id", "BigCodeBench/0", "complete_prompt", "import math\ndef task_func(x):\n    \"\"\"The root.\"\"\"\n", "code_prompt", "import math\ndef task_func(x):\n",
		"canonical_solution", "    return math.sqrt(x)", "libs", libs,
		"test", "import unittest\nclass TestCases(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(task_func(4), 2)\n    def test_b(self):\n        self.assertRaises(ValueError, task_func, -1)\n")
}

func TestBigCodeBench(t *testing.T) {
	file := bigCodeRow("['math', 'unittest']")
	tasks, err := ReadFile(write(t, "f.jsonl", file))
	if err != nil {
		t.Fatal(err)
	}
	task := tasks[0]
	check(t, grader(t), file, task.ID(), task.Truth(), task.Program("    return x ** 0.5 if x >= 0 else math.sqrt(x)\n", true),
		// A solution may lack the imports.
		task.Program("def task_func(x):\n    return math.sqrt(x)\n", false),
		"import math\ndef task_func(x):\n    return math.sqrt(x) if os.sep and sys.path and environ is os.environ else 0\n", "",
		task.Program("def task_func(x):\n    return 2\n", false), "x = ", "import os\nos._exit(0)", "import sys\nsys.exit(0)",
		task.Program("import os\ndef task_func(x):\n    os._exit(0)\n", false), task.Program("def task_func(x):\n    raise SystemExit(0)\n", false))
}

// Functions of an answer see what the test imports and defines, as in one module, and
// these names go before their own.
func TestBigCodeBenchIsOneModule(t *testing.T) {
	file := strings.Replace(bigCodeRow("['math']"), "import unittest", "import unittest, decimal\\nROOT = 0.5\\nBOTH = 0.5", 1)
	tasks, err := ReadFile(write(t, "f.jsonl", file))
	if err != nil {
		t.Fatal(err)
	}
	body := func(text string) string {
		return tasks[0].Program("BOTH = 1\ndef task_func(x):\n    if x < 0:\n        raise ValueError\n    return "+text+"\n", false)
	}
	check(t, grader(t), file, tasks[0].ID(), tasks[0].Truth(), body("x ** ROOT"), body("decimal.Decimal(x).sqrt()"), body("x ** BOTH"), "",
		body("x ** NEITHER"), body("x ** ROOT + 1"))
}

// A task that does not pass says what it uses and the sandbox refuses.
func TestBigCodeBenchNamesTheRefusal(t *testing.T) {
	for body, want := range map[string]string{
		"import subprocess\n    return subprocess.check_output(['true'])":  "the task uses subprocess: an isolated sandbox starts no other program",
		"import os\n    return os.system('true')":                          "the task uses os.system: an isolated sandbox starts no other program",
		"import requests, os\n    os.popen(requests.get('http://a').text)": "the task uses os.popen: an isolated sandbox starts no other program; the task uses requests: an isolated sandbox has no network",
		"import os.path, urllib.parse, os_system\n    return 1":            "",
	} {
		task := &bigCode{Prompt: "def task_func():\n", Canonical: "    " + body}
		if got := task.refused(); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	file := strings.Replace(bigCodeRow("['math', 'unittest']"), "return math.sqrt(x)", "import subprocess; return int(subprocess.check_output(['echo', '2'])) if x > 0 else math.sqrt(x)", 1)
	tasks, err := ReadFile(write(t, "f.jsonl", file))
	if err != nil {
		t.Fatal(err)
	}
	err = grader(t).Grade(t.Context(), tasks, map[string][]string{tasks[0].ID(): {tasks[0].Truth()}}, func(r *Result) error {
		if v := r.Verdicts[0]; v.Passed || !strings.Contains(v.Reason, "PermissionError") || !strings.HasSuffix(v.Reason, "(the task uses subprocess: an isolated sandbox starts no other program)") {
			t.Errorf("%+v", v)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestImported(t *testing.T) {
	got := imported("import os, a.b as c\nfrom d.e import f\nclass T:\n    def test(self):\n        import g # h\n        text = 'import i'\nfrom . import j\nimportant = 1\n")
	if want := []string{"os", "a", "d", "g"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMissingModulesAreNamed(t *testing.T) {
	file := strings.Replace(bigCodeRow("['math', 'codea1_no_such_module']"), "import unittest", "import unittest, codea1_nor_this.part", 1)
	tasks, err := ReadFile(write(t, "f.jsonl", file))
	if err != nil {
		t.Fatal(err)
	}
	var got []*Result
	err = grader(t).Grade(t.Context(), tasks, map[string][]string{tasks[0].ID(): {"x"}}, func(r *Result) error {
		got = append(got, r)
		return nil
	})
	if err != nil || len(got) != 1 || len(got[0].Verdicts) != 0 || strings.Join(got[0].Missing, " ") != "codea1_no_such_module codea1_nor_this" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadNamesTheMistake(t *testing.T) {
	crux := row("id", "s0", "code", "c", "input", "", "output", "1")
	cases := `[{"input": "1", "output": "1", "testtype": "stdin"}]`
	lcb := func(public, private, metadata string) string {
		return row("question_id", "q", "question_content", "?", "public_test_cases", public, "private_test_cases", private, "metadata", metadata)
	}
	for text, want := range map[string]string{
		"":          "f.jsonl: neither a file of CRUXEval",
		"{":         "f.jsonl:1: neither",
		`{"id": 1}`: "f.jsonl:1: neither",
		crux + "[]": "f.jsonl:2: CRUXEval: ",
		crux + crux: "f.jsonl:2: problem s0/input occurs twice",
		row("id", "s0", "code", "", "input", "", "output", "1"): `f.jsonl:1: CRUXEval: problem "s0": field code is missing or empty`,
		lcb("1", "", ""):       `f.jsonl:1: LiveCodeBench: problem "q": field public_test_cases: `,
		lcb(cases, "!", ""):    `field private_test_cases: want a JSON list of tests, or base64`,
		lcb(cases, "aGk=", ""): `field private_test_cases: `,
		lcb(cases, "", "x"):    `field metadata: `,
		lcb("[]", "", ""):      `problem "q" has no tests`,
		lcb(strings.Replace(cases, "stdin", "other", 1), "", ""):           `field testtype is "other", want stdin or functional`,
		lcb(strings.Replace(cases, "stdin", "functional", 1), "", ""):      `field metadata: func_name is ""`,
		lcb(cases, strings.Replace(cases, "stdin", "functional", 1), "{}"): `field testtype: both "stdin" and "functional"`,
		bigCodeRow("math"): `f.jsonl:1: BigCodeBench: problem "BigCodeBench/0": field libs is no list`,
		bigCodeRow(""):     `field libs is missing or empty`,
		row("task_id", "1", "complete_prompt", "", "test", ""): `field complete_prompt is missing or empty`,
	} {
		if _, err := ReadFile(write(t, "f.jsonl", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	tasks, err := ReadFile(write(t, "f.jsonl", crux))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                    "it has no samples",
		row("task_id", "s0", "solution", "1"): `s.jsonl:1: field task_id: the benchmark has no task "s0"`,
		row("task_id", "s0/input"):            "s.jsonl:1: want field solution or completion",
	} {
		if _, err := ReadSamples(write(t, "s.jsonl", text), tasks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A pickle that is more than one text is refused, and nothing of it runs.
func TestUnpickleText(t *testing.T) {
	for data, want := range map[string]string{
		"\x80\x04\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x02ab\x94.": "ab",
		"\x80\x02X\x02\x00\x00\x00abq\x00.":                           "ab",
		"\x80\x04X\x02\x00\x00\x00ab\x94.":                            "ab",
	} {
		if got, err := unpickleText([]byte(data)); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", data, got, err)
		}
	}
	for _, data := range []string{
		"", "\x80", "\x80\x04", "\x80\x04\x95", "\x80\x04\x8c\x09ab\x94.", "\x80\x02X\xff\xff\xff\xffab.", "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffab.",
		"\x80\x04\x8c\x02ab\x94", "\x80\x04\x8c\x02os\x8c\x06system\x93.", "cos\nsystem\n(S'true'\ntR.",
	} {
		if got, err := unpickleText([]byte(data)); err == nil {
			t.Errorf("%q: %q", data, got)
		}
	}
}
