package evalplus

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codea1/consumers/execution"
	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pools.Main(m)) }

var pools = sandboxtest.Pools[int64, *sandbox.Pool]{Skip: sandbox.ErrNotIsolated}

// generous has limits for a busy machine. An answer that hangs takes the first.
func generous(t testing.TB) (*execution.Executor, int) {
	t.Helper()
	config := sandbox.Config{CallTimeout: 10 * time.Second, JobTimeout: 120 * time.Second, MemoryBytes: 4 << 30}
	pool := pools.Get(t, config.MemoryBytes, func() (*sandbox.Pool, error) { return sandbox.Open(t.Context(), config) })
	return execution.New(pool), pool.Config().Workers
}

// row returns a line of a release file.
func row(id, entry, solution string, atol float64, base, plus string) string {
	line, err := json.Marshal(map[string]any{
		"task_id": id, "prompt": "# a task\n", "entry_point": entry, "canonical_solution": solution, "atol": atol,
		"contract": "    assert isinstance(x, int)\n", "base_input": "BASE", "plus_input": "PLUS", "assertion": "",
	})
	if err != nil {
		panic(err)
	}
	return strings.NewReplacer(`"BASE"`, base, `"PLUS"`, plus).Replace(string(line)) + "\n"
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestInputs: the arguments are those that EvalPlus passes. The tasks and the conversions
// are those of its release.
func TestInputs(t *testing.T) {
	for _, c := range []struct{ id, given, want string }{
		{"HumanEval/2", `[[[1,2.0,"a\u00e9\"Infinity",null,true]],[{"b":1,"a":[]}]]`, `([1, 2.0, 'aé"Infinity', None, True],) ({'b': 1, 'a': []},)`},
		{"HumanEval/2", `[[Infinity,-Infinity,1e400,10000000000000000000000]]`, `(float('inf'), float('-inf'), float('inf'), 10000000000000000000000)`},
		{"Mbpp/2", `[[[1,2],[3]]]`, `((1, 2), (3,))`},
		{"Mbpp/63", `[[[[1,2],[3]]]]`, `([(1, 2), (3,)],)`},
		{"Mbpp/75", `[[[[1,2]],3]]`, `([(1, 2)], 3)`},
		{"Mbpp/106", `[[[1],[2]]]`, `([1], (2,))`},
		{"Mbpp/115", `[[[[1,1],[],{}]]]`, `([{1}, {}, {}],)`},
		{"Mbpp/124", `[["0","(1-2j)"]]`, `(0.0, complex(1.0, -2.0))`},
		{"Mbpp/250", `[[[1],2]]`, `((1,), 2)`},
		{"Mbpp/252", `[["5j"]]`, `(complex(0.0, 5.0),)`},
		{"Mbpp/259", `[[[[1],[2]],[[3]]]]`, `(((1,), (2,)), ((3,),))`},
		{"Mbpp/278", `[[[1,[2]]]]`, `((1, (2,)),)`},
		{"Mbpp/307", `[[[1],2,3]]`, `((1,), 2, 3)`},
		{"Mbpp/580", `[[[1,[2,[3]]]]]`, `((1, (2, (3,))),)`},
		{"Mbpp/722", `[[{"a":[1,2]},3,4]]`, `({'a': (1, 2)}, 3, 4)`},
		{"Mbpp/3", `[[[1]]]`, `([1],)`},
	} {
		tasks, err := ReadFile(write(t, "f.jsonl", row(c.id, "f", "x", 0, c.given, "[]")))
		if err != nil {
			t.Errorf("%s: %v", c.id, err)
			continue
		}
		var got []string
		for _, given := range tasks[0].inputs() {
			got = append(got, literal.Text(given))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: got %s, want %s", c.id, text, c.want)
		}
	}
}

// A number with millions of digits is refused before it is read, which takes minutes.
func TestLongNumbers(t *testing.T) {
	if n, err := readNumber(strings.Repeat("9", 1<<25)); err == nil || len(err.Error()) > 200 {
		t.Errorf("%.100v, %v", n, err)
	}
	if n, err := readNumber(strings.Repeat("9", 1000)); err != nil {
		t.Errorf("%v, %v", n, err)
	}
}

func TestReadNamesTheMistake(t *testing.T) {
	good := row("HumanEval/0", "f", "x", 0, "[[1]]", "[]")
	for text, want := range map[string]string{
		"":           "f.jsonl: not a row of EvalPlus's release format: it has no rows",
		"{":          "f.jsonl:1: not a row",
		`{"id":"a"}`: `f.jsonl:1: not a row of EvalPlus's release format: task_id is ""`,
		good + good:  "f.jsonl:2: a task occurs twice: HumanEval/0",
		good + row("Mbpp/2", "f", "", 0, "[[1]]", "[]"): "f.jsonl:2: not a row of EvalPlus's release format: task Mbpp/2 lacks",
		row("Mbpp/2", "f", "x", 0, "[]", "[]"):          "has no base_input",
		row("Mbpp/2", "f", "x", 0, "[1]", "[]"):         "task Mbpp/2: base_input: not a row of EvalPlus's release format: input 0 is no list",
		row("Mbpp/2", "f", "x", 0, "[[1]]", "3"):        "task Mbpp/2: plus_input: not a row of EvalPlus's release format: want a list",
		row("Mbpp/2", "f", "x", 2, "[[1]]", "[]"):       "atol is 2, outside 0 to 1",
	} {
		if _, err := ReadFile(write(t, "f.jsonl", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	tasks, err := ReadFile(write(t, "f.jsonl", good))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"": "it has no samples",
		`{"task_id":"HumanEval/1","solution":""}`: `s.jsonl:1: field task_id: the benchmark has no task "HumanEval/1"`,
		"\n" + `{"task_id":"HumanEval/0"}`:        "s.jsonl:2: want field solution or completion",
	} {
		if _, err := ReadSamples(write(t, "s.jsonl", text), tasks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestRules: each way in which EvalPlus compares values, with programs that pass
// neither the base tests nor the plus tests, only the base tests, or all.
func TestRules(t *testing.T) {
	x, workers := generous(t)
	const neither, base, all = "neither", "base", "all"
	for i, c := range []struct {
		id, entry, truth string
		atol             float64
		base, plus       string
		samples          []string // a program and the tests that it passes
	}{
		{
			"HumanEval/0", "f", "def f(x): return x * 2", 0, "[[1]]", "[[2]]",
			[]string{
				"def f(x): return x + x", all, "def f(x): return 2", base, "def f(x): return 4", neither, "def g(x): return x", neither,
				"def f(x): return 2.0 * x", all, "", neither, "raise ValueError", neither, "def f(x): return [x * 2]", neither,
				"def f(x): return 2 if x == 1 else exit()", base, "def f(x):\n while x == 2: return 1\n return 2", base,
			},
		},
		// Floats have a tolerance of 1e-6 without one in the file; lists of floats too.
		{
			"HumanEval/0", "f", "def f(x): return x / 3", 0, "[[1]]", "[[3000000]]",
			[]string{"def f(x): return x / 3 + 5e-7", all, "def f(x): return x / 3 + 5e-6", neither, "def f(x): return round(x / 3, 9) if x == 1 else 1000000", all},
		},
		{"HumanEval/0", "f", "def f(x): return [x / 3]", 0, "[[1]]", "[[2]]", []string{"def f(x): return [x / 3 + 5e-7]", all, "def f(x): return (x / 3 + 5e-7,)", neither}},
		// A large int has none.
		{"HumanEval/0", "f", "def f(x): return 10 ** 9", 0, "[[1]]", "[]", []string{"def f(x): return 10 ** 9 + 1", neither, "def f(x): return 1e9", all}},
		{"HumanEval/0", "f", "def f(x): return 2.5", 0.0001, "[[1]]", "[]", []string{"def f(x): return 2.50009", all, "def f(x): return 2.502", neither}},
		// Any root counts: of x*x - 4 too the other one.
		{
			"HumanEval/32", "find_zero", "def find_zero(xs): return 2.0", 0.0001, "[[[-4, 0, 1]]]", "[[[-2, 1]]]",
			[]string{"def find_zero(xs): return -2.0 if len(xs) == 3 else 2.00001", all, "def find_zero(xs): return -2", base, "def find_zero(xs): return None", neither},
		},
		{
			"Mbpp/2", "similar_elements", "def similar_elements(a, b): return tuple(set(a) & set(b))", 0, "[[[1, 2], [2, 1]]]", "[[[3], [4]]]",
			[]string{"def similar_elements(a, b): return [2, 1, 2] if 1 in a else []", all, "def similar_elements(a, b): return [1]", neither, "def similar_elements(a, b): return None", neither},
		},
		{
			"Mbpp/737", "check_str", "import re\ndef check_str(s): return re.match('a', s)", 0, `[["abc"]]`, `[["bc"]]`,
			[]string{
				"def check_str(s): return s[0] == 'a'", all, "def check_str(s): return 'yes' if s[0] == 'a' else None", all,
				"def check_str(s): return True", base, "def check_str(s): return s[0] == 'a' or 'no'", base,
			},
		},
		{"Mbpp/164", "are_equivalent", "def are_equivalent(a, b): return a == b", 0, "[[1, 2]]", "[[2, 2]]", []string{"def are_equivalent(a, b): return None", all, "def are_equivalent(a, b): return 1 // (b - a)", base}},
		{"Mbpp/295", "sum_div", "def sum_div(n): return 1", 0, "[[2]]", "[[3]]", []string{"def sum_div(n): return 0 if n == 2 else 1", all, "def sum_div(n): return n - 1", base}},
		{
			"Mbpp/581", "surface_Area", "def surface_Area(b, s): return 2 * b * s + b ** 2", 0, "[[3, 4]]", "[[4, 5]]",
			[]string{"def surface_Area(b, s): return 33 if b == 3 else 59", all, "def surface_Area(b, s): return 33", base},
		},
		{
			"Mbpp/558", "digit_distance_nums", "def digit_distance_nums(a, b): return 6", 0, "[[1, 2]]", "[[23, 5]]",
			[]string{"def digit_distance_nums(a, b): return 1 if a == 1 else 4", all, "def digit_distance_nums(a, b): return 6 if a == 1 else 5", base},
		},
		// Values that are too large for a test, or for a frame, are computed again.
		{
			"HumanEval/0", "f", "def f(n): return list(range(n))", 0, "[[3]]", "[[20000], [150000]]",
			[]string{"def f(n): return [float(i) for i in range(n)]", all, "def f(n): return list(range(min(n, 149999)))", base, "def f(n): return tuple(range(n))", neither},
		},
		// So are ints that are too large, and values that no literal expresses.
		{
			"HumanEval/0", "f", "def f(n): return 1 << n", 0, "[[3]]", "[[70000]]",
			[]string{"def f(n): return 2 ** n", all, "def f(n): return 1 << min(n, 69999)", base, "def f(n): return 0", neither},
		},
		{
			"HumanEval/0", "f", "from fractions import Fraction\ndef f(n): return Fraction(n, 2) if n > 1 else n", 0, "[[1]]", "[[4], [3]]",
			[]string{"def f(n): return n / 2 if n > 1 else n", all, "def f(n): return n // 2 if n > 1 else n", base, "def f(n): return -1", neither},
		},
	} {
		tasks, err := ReadFile(write(t, "f.jsonl", row(c.id, c.entry, c.truth, c.atol, c.base, c.plus)))
		if err != nil {
			t.Fatal(err)
		}
		codes := []string{tasks[0].Solution()}
		want := []string{all}
		for j := 0; j < len(c.samples); j += 2 {
			codes, want = append(codes, c.samples[j]), append(want, c.samples[j+1])
		}
		err = Grade(t.Context(), x, workers, tasks, map[string][]string{c.id: codes}, func(task *Task, grades []*grading.Grade) error {
			for j, g := range grades {
				got := neither
				b, p := task.Passed(g.Loads, g.Verdicts)
				switch {
				case p:
					got = all
				case b:
					got = base
				}
				if g.Failure != "" || got != want[j] {
					t.Errorf("row %d, %s: passes %s, want %s: %s %s", i, codes[j], got, want[j], g.Failure, g.FirstReason())
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestAHangingAnswerIsGivenUp at its first call: EvalPlus stops there too.
func TestAHangingAnswerIsGivenUp(t *testing.T) {
	config := sandbox.Config{Workers: 1, CallTimeout: sandboxtest.CallTimeout, MemoryBytes: 512 << 20}
	x := execution.New(pools.Get(t, config.MemoryBytes, func() (*sandbox.Pool, error) { return sandbox.Open(t.Context(), config) }))
	tasks, err := ReadFile(write(t, "f.jsonl", row("Mbpp/295", "sum_div", "def sum_div(x): return x", 0, "[[1]]", "[[2], [3], [4]]")+
		row("HumanEval/0", "f", "def f(x): return x", 0, "[[1]]", "[[2], [3], [4]]")))
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string][]string{}
	for _, task := range tasks {
		samples[task.ID] = []string{"def " + task.EntryPoint + "(x):\n while x > 1: pass\n return x"}
	}
	err = Grade(t.Context(), x, 1, tasks, samples, func(task *Task, grades []*grading.Grade) error {
		counts := map[events.Verdict]int{}
		for _, v := range grades[0].Verdicts {
			counts[v.Verdict]++
		}
		if base, plus := task.Passed(true, grades[0].Verdicts); plus || counts[events.VerdictTimeout] > 1 || counts[events.VerdictNotRun] < 2 || task.EntryPoint == "f" && !base {
			t.Errorf("%s: %v, base %v, plus %v", task.ID, counts, base, plus)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestATruthThatFailsIsNamed: no answer is graded against a ground truth that raises.
func TestATruthThatFailsIsNamed(t *testing.T) {
	x, workers := generous(t)
	tasks, err := ReadFile(write(t, "f.jsonl", row("HumanEval/0", "f", "def f(x): return 1 // x", 0, "[[1], [0]]", "[]")))
	if err != nil {
		t.Fatal(err)
	}
	err = Grade(t.Context(), x, workers, tasks, map[string][]string{"HumanEval/0": {"def f(x): return 1"}}, func(_ *Task, grades []*grading.Grade) error {
		if want := "task HumanEval/0: the ground truth raised on input 1: ZeroDivisionError"; !strings.Contains(grades[0].Failure, want) {
			t.Errorf("got %q, want %q", grades[0].Failure, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// slow are tasks with ground truths that take seconds.
var slow = strings.Fields(`HumanEval/15 HumanEval/36 HumanEval/59 HumanEval/83 HumanEval/94 HumanEval/130 HumanEval/139
	Mbpp/84 Mbpp/123 Mbpp/162 Mbpp/255 Mbpp/256 Mbpp/271 Mbpp/300 Mbpp/389 Mbpp/392 Mbpp/453 Mbpp/583 Mbpp/589 Mbpp/592 Mbpp/599 Mbpp/603 Mbpp/630 Mbpp/745`)

func isSlow(task string) bool { return slices.Contains(slow, task) }

// shared returns the path of a file of the data sets beside the repository, or skips.
func shared(t testing.TB, name string) string {
	t.Helper()
	directory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		path := filepath.Join(directory, "shared", "data", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		parent := filepath.Dir(directory)
		if parent == directory {
			t.Skipf("no shared/data/%s in a folder above", name)
		}
		directory = parent
	}
}

// TestReleaseFiles: ground truths of the release files pass, with the assertions of
// their contracts too, and a program without a value does not. It takes some tasks;
// codea1 eval with the ground truths as samples takes all.
func TestReleaseFiles(t *testing.T) {
	x, workers := generous(t)
	for name, n := range map[string]int{"HumanEvalPlus-v0.1.10.jsonl.gz": 164, "MbppPlus-v0.2.0.jsonl.gz": 378} {
		tasks, err := ReadFile(shared(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(tasks) != n {
			t.Errorf("%s has %d tasks, want %d", name, len(tasks), n)
		}
		var taken []*Task
		samples := map[string][]string{}
		for i := 0; i < len(tasks); i += sandboxtest.IfThorough(10, 80) {
			task := tasks[i]
			if isSlow(task.ID) {
				continue
			}
			taken = append(taken, task)
			samples[task.ID] = []string{task.Solution(), task.Prompt + "    pass\ndef " + task.EntryPoint + "(*a): pass\n"}
			if strings.HasPrefix(task.ID, humanEval) {
				samples[task.ID] = append(samples[task.ID], task.Prompt+task.Contract+task.Canonical)
			}
		}
		graded := 0
		err = Grade(t.Context(), x, workers, taken, samples, func(task *Task, grades []*grading.Grade) error {
			graded++
			for i, g := range grades {
				base, plus := task.Passed(g.Loads, g.Verdicts)
				if right := i != 1; g.Failure != "" || base != right || plus != right {
					t.Errorf("%s, sample %d: base %v, plus %v: %s %s", task.ID, i, base, plus, g.Failure, g.FirstReason())
				}
			}
			return nil
		})
		if err != nil || graded != len(taken) || graded < 3 {
			t.Errorf("%s: %d of %d tasks graded, %v", name, graded, len(taken), err)
		}
	}
}

// TestRootOf compares with polynomials and values of known distance to 0.
func TestRootOf(t *testing.T) {
	accepts := rootOf(literal.Tuple{literal.List{literal.NewInt(-6), literal.NewInt(11), literal.NewInt(-6), literal.NewInt(1)}}, 0.001) // 1, 2, 3
	for v, want := range map[literal.Value]bool{
		literal.Float(1): true, literal.NewInt(2): true, literal.Float(3.0004): true, literal.Float(3.0006): false, literal.Bool(true): true, literal.Bool(false): false,
		literal.Float(math.NaN()): false, literal.Float(math.Inf(1)): false, literal.Complex(1): true, literal.Complex(1i): false, literal.None{}: false, literal.Str("1"): false,
	} {
		if accepts(v) != want {
			t.Errorf("%s is accepted: %v", literal.Text(v), !want)
		}
	}
}

// TestBehaviour: answers agree if all outcomes are the same.
func TestBehaviour(t *testing.T) {
	fail := func(detail string) []events.GoldenVerdict {
		return []events.GoldenVerdict{{Verdict: events.VerdictPass}, {Verdict: events.VerdictFail, Detail: detail}}
	}
	first, again := grading.Behaviour(true, fail("returned 1")), grading.Behaviour(true, fail("returned 1"))
	if first != again {
		t.Error("equal outcomes differ")
	}
	seen := map[string]bool{}
	for i, b := range []string{grading.Behaviour(true, fail("returned 1")), grading.Behaviour(true, fail("returned 2")), grading.Behaviour(false, nil), grading.Behaviour(true, fail("")[:1])} {
		if seen[b] {
			t.Errorf("outcome %d has the behaviour of another: %s", i, fmt.Sprint(seen))
		}
		seen[b] = true
	}
}
