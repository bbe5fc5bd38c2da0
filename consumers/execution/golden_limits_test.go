package execution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// TestOddGoldenValues: a check of a value that no literal expresses passes where
// CPython passes it, and an answer with another value fails it.
func TestOddGoldenValues(t *testing.T) { everywhere(t, quick, testOddGoldenValues) }

func testOddGoldenValues(t *testing.T, x *Executor) {
	for _, c := range []struct{ header, value, other, test string }{
		{"from fractions import Fraction", "Fraction(1, 2)", "Fraction(1, 3)", "assert f() == 0.5"},
		{"from decimal import Decimal", "Decimal('1.5')", "Decimal('1.6')", "assert f() == 1.5"},
		{"from decimal import Decimal", "[Decimal(2)]", "[Decimal(3)]", "assert f() == [2]"},
		{"", "{'a': 1}.keys()", "{'b': 1}.keys()", "assert f() == {'a'}"},
		{"", "{'a': 1}.items()", "{'a': 2}.items()", "assert f() == {('a', 1)}"},
		{"", "bytearray(b'ab')", "bytearray(b'ac')", "assert f() == b'ab'"},
		{"", "memoryview(b'ab')", "memoryview(b'b')", "assert f() == b'ab'"},
		{"from collections import UserDict", "UserDict(a=1)", "UserDict(a=2)", "assert f() == {'a': 1}"},
		{"from collections import UserList", "UserList([1])", "UserList([2])", "assert f() == [1]"},
		{"from collections import UserString", "UserString('a')", "UserString('b')", "assert f() == 'a'"},
		{"from types import MappingProxyType", "MappingProxyType({'a': 1})", "MappingProxyType({})", "assert f() == {'a': 1}"},
		{"from collections import ChainMap", "ChainMap({'a': 1}, {'b': 2})", "ChainMap({'a': 1})", "assert f() == {'a': 1, 'b': 2}"},
		{"class A:\n def __eq__(self, o): return o == 3\nclass B: pass", "A()", "B()", "assert f() == 3"},
	} {
		program := func(value string) string { return c.header + "\ndef f(): return " + value }
		plan, err := x.PlanGolden(t.Context(), sandbox.Program{Code: program(c.value), EntryPoint: "f"}, []string{c.test, "assert f() != 9"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for code, want := range map[string]events.Verdict{program(c.value): events.VerdictPass, program(c.other): events.VerdictFail} {
			got, err := x.Grade(t.Context(), sandbox.Program{Code: code, EntryPoint: "f"}, plan)
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Verdict != want || !got[0].InProcess || got[1].Verdict != events.VerdictPass {
				t.Errorf("%s: %s: %+v", code, c.test, got)
			}
		}
	}
}

// TestShadowedGoldenValues: the arguments of a golden test mean Python's own names, too,
// and the program's where the ground truth needs those.
func TestShadowedGoldenValues(t *testing.T) { everywhere(t, quick, testShadowedGoldenValues) }

func testShadowedGoldenValues(t *testing.T, x *Executor) {
	const right = "from math import *\ndef f(*v): return [list(v[0])] if len(v) == 1 else len(v)"
	for _, test := range []string{
		"assert f(pow(v, 2, 5) for v in [1, 2, 3]) == [[1, 4, 4]]", "assert f(map(lambda v: pow(v, 2, 5), [3])) == [[4]]", "assert f(set(), float('inf')) == 2",
		"r = f(set([2]))\nassert r == [[2]]", "assert f([inf, nan], set(), 1) == 3",
	} {
		for _, own := range []string{"", "\nset = float = map = None", "\ndef map(*v): return v\ndef set(*v): return 3\nclass float: pass"} {
			got, err := x.Check(t.Context(), right+own, "f", []string{test})
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Verdict != events.VerdictPass || got[0].InProcess {
				t.Errorf("%s: %s: %+v", own, test, got)
			}
		}
	}
	truth := "def max(*v): return 7\ndef f(x): return x"
	if got, err := x.CheckTruth(t.Context(), truth, "f", []string{"assert f(max(1, 2)) == 7"}); err != nil || got[0].Verdict != events.VerdictPass {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSiteValues: a program has the built-in functions that `python file.py` has.
func TestSiteValues(t *testing.T) {
	x := openExecutor(t, quick)
	const code = "def f(name):\n try: {'exit': exit, 'quit': quit}[name](3)\n except SystemExit as e: return e.code, callable(help)"
	got, err := x.Check(t.Context(), code, "f", []string{"assert f('exit') == (3, True)", "assert f('quit') == (3, True)"})
	if err != nil || got[0].Verdict != events.VerdictPass || got[1].Verdict != events.VerdictPass {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestLimitsAreNoOtherValues: a limit is never a fail, and time never anything but a
// timeout, even if the script catches every exception.
func TestLimitsAreNoOtherValues(t *testing.T) {
	sandboxtest.OnlyThorough(t, "other tests of golden tests meet each limit")
	t.Parallel()
	config := quick
	config.CallTimeout = 400 * time.Millisecond
	x := openExecutor(t, config)
	const (
		hangs = "def f(x):\n while True: pass"
		exits = "import os\ndef f(x): os._exit(0)"
		large = "def f(x): return 'x' * 2_000_000"
		holds = "def f(x): return len(bytearray(1 << 30))"
		suite = "import unittest\nclass T(unittest.TestCase):\n def test(self): %s"
	)
	for _, c := range []struct {
		code, test string
		want       events.Verdict
		detail     string
	}{
		{hangs, fmt.Sprintf(suite, "self.assertEqual(f(1), 1)"), events.VerdictTimeout, "no result"},
		{hangs, fmt.Sprintf(suite, "self.assertRaises(BaseException, f, 1)"), events.VerdictTimeout, "no result"},
		{hangs, "try: f(1)\nexcept: pass", events.VerdictTimeout, "no result"},
		{hangs, "try: f(1)\nexcept BaseException: assert False", events.VerdictTimeout, "no result"},
		{hangs, "import pytest\ndef test_f():\n with pytest.raises(BaseException): f(1)", events.VerdictTimeout, "no result"},
		{hangs, "assert f(1) == {}.keys()", events.VerdictTimeout, "no result"},
		{hangs, "def check(c):\n try: assert c(1) == 1\n finally: assert False\ncheck(f)", events.VerdictTimeout, "no result"},
		{exits, "try: f(1)\nexcept: pass", events.VerdictRaised, "exited"},
		{exits, fmt.Sprintf(suite, "self.assertEqual(f(1), 1)"), events.VerdictRaised, "exited"},
		{large, "r = f(1)\nassert r == 'x' * 2_000_000", events.VerdictNotRun, "over the size limit"},
		{large, fmt.Sprintf(suite, "self.assertEqual(f(1), 'x' * 2_000_000)"), events.VerdictNotRun, "over the size limit"},
		{large, "assert len(f(1)) == 2_000_000", events.VerdictPass, ""},
		{holds, "try: r = f(1)\nexcept Exception: assert False", events.VerdictRaised, "MemoryError"},
		{holds, "try: r = f(1)\nexcept Exception as e: raise AssertionError from e", events.VerdictRaised, "MemoryError"},
		{holds + "\ny = 1", "from solution import f, y\ntry: r = f(y)\nexcept Exception: assert False", events.VerdictRaised, "MemoryError"},
		{holds, fmt.Sprintf(suite, "\n  try: f(1)\n  except Exception: self.fail()"), events.VerdictRaised, "MemoryError"},
	} {
		got, err := x.Check(t.Context(), c.code, "f", []string{c.test})
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Verdict != c.want || !strings.Contains(got[0].Detail, c.detail) {
			t.Errorf("%s: %s: %+v, want %s", c.code, c.test, got[0], c.want)
		}
	}
}

// TestSlowTruthSuites: an answer that is the ground truth passes every kept test, however
// slow both are.
func TestSlowTruthSuites(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, sandbox.Config{Workers: 1, CallTimeout: 400 * time.Millisecond, JobTimeout: 400 * time.Millisecond, CacheBytes: -1})
	const slow, tests, answers = "import time\ndef f(x):\n    time.sleep(0.04)\n    return x\n", 20, 8
	suite := ""
	for i := range tests {
		suite += fmt.Sprintf("assert f(%d) == %d\n", i, i)
	}
	codes, rows := make([]string, answers), make([][]string, answers)
	codes[0], rows[0] = slow, []string{suite}
	for i := range codes[1:] {
		codes[1+i], rows[1+i] = "def f(x): return x", []string{""}
	}
	out, err := x.Execute(t.Context(), sampled(slow, []events.HistoricalTest{{Call: "f(100)", Expected: "100"}}, codes, rows))
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, test := range out.Answers[0].Suites[0].Tests {
		if test.Status == events.StatusKept {
			kept++
			if test.Verdict != events.VerdictPass {
				t.Errorf("%+v", test)
			}
		}
	}
	if kept < 12 { // the job timeout is ten calls
		t.Errorf("%d kept", kept)
	}
}

// TestSlowLoadSuites: an answer that is the ground truth loads where that loads.
func TestSlowLoadSuites(t *testing.T) {
	sandboxtest.OnlyThorough(t, "TestSlowTruthSuites has the same limits")
	t.Parallel()
	x := openExecutor(t, sandbox.Config{Workers: 1, CallTimeout: time.Second, CacheBytes: -1})
	truth, answer := "import time\ntime.sleep(0.4)\ndef f(x): return x", "import time\ntime.sleep(1.1)\ndef f(x): return x"
	if test := executeSuite(t, x, truth, answer, "assert f(1) == 1")[0]; test.Status != events.StatusKept || test.Verdict != events.VerdictPass {
		t.Errorf("%+v", test)
	}
	plan, err := x.PlanGolden(t.Context(), sandbox.Program{Code: truth, EntryPoint: "f"}, []string{"assert f(1) == 1", "assert f(1) < 2"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := x.Grade(t.Context(), sandbox.Program{Code: answer, EntryPoint: "f"}, plan)
	if err != nil || verdicts[0].Verdict != events.VerdictPass || verdicts[1].Verdict != events.VerdictPass {
		t.Errorf("%+v, %v", verdicts, err)
	}
}

// TestSlowTruthGoldenValues: the limits of golden tests follow from the ground truth's
// time. A call limit shorter than the ground truth's time fails no right answer, and an
// answer that hangs is over its time.
func TestSlowTruthGoldenValues(t *testing.T) {
	sandboxtest.OnlyThorough(t, "TestSlowTruthSuites has the same limits")
	t.Parallel()
	x := openExecutor(t, sandbox.Config{Workers: 1, CallTimeout: 200 * time.Millisecond, JobTimeout: 200 * time.Millisecond, CacheBytes: -1})
	program := func(body string) sandbox.Program {
		return sandbox.Program{Code: "import time\nlimit = 1\ndef f(x):\n    " + body + "\n    return x\n", EntryPoint: "f"}
	}
	tests := []string{
		"assert f(1) == 1", "import time\ntime.sleep(0.25)\nassert f(1) in (1, 2)", "import time\ntime.sleep(0.25)\nassert f(limit) == 1",
	}
	plan, err := x.PlanGolden(t.Context(), program("time.sleep(0.25)"), tests, 0)
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]events.Verdict{"time.sleep(0.3)": events.VerdictPass, "time.sleep(99)": events.VerdictTimeout} {
		got, err := x.Grade(t.Context(), program(body), plan)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v.Verdict != want && (want == events.VerdictPass || v.Verdict != events.VerdictNotRun || i == 0) {
				t.Errorf("%s: %s: %+v, want %s", body, tests[i], v, want)
			}
		}
	}
}

func TestAllow(t *testing.T) {
	x := openExecutor(t, sandbox.Config{Workers: 1, CallTimeout: time.Second, JobTimeout: 10 * time.Second})
	for _, c := range []struct {
		took         timed
		each, budget time.Duration
	}{
		{timed{}, time.Second, 10 * time.Second},
		{timed{sum: time.Second, most: 100 * time.Millisecond, unknown: 2}, time.Second, 10 * time.Second},
		{timed{sum: 16 * time.Second, most: time.Second / 2}, 2 * time.Second, 80 * time.Second},
		{timed{sum: time.Second, most: time.Second, unknown: 9}, 4 * time.Second, 80 * time.Second},
		{timed{sum: 20 * time.Second, most: 20 * time.Second}, time.Minute, 160 * time.Second},
	} {
		if got := x.allow(c.took); got != (limits{c.each, c.budget}) {
			t.Errorf("%+v: %+v", c.took, got)
		}
	}
}

// TestRecomputedGoldenTests: an answer with the ground truth's value, which is too large
// to be transferred, passes outside its process. Any other answer gets Python's verdict
// in its process.
func TestRecomputedGoldenTests(t *testing.T) { everywhere(t, quick, testRecomputedGoldenTests) }

func testRecomputedGoldenTests(t *testing.T, x *Executor) {
	const right = "def f(n): return [i / 2 for i in range(n)]"
	plan := func(tests ...string) *GoldenPlan {
		plan, err := x.PlanGolden(t.Context(), sandbox.Program{Code: right, EntryPoint: "f"}, tests, 0)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	grade := func(plan *GoldenPlan, code string) []events.GoldenVerdict {
		got, err := x.Grade(t.Context(), sandbox.Program{Code: code, EntryPoint: "f"}, plan)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	large, small := RecomputedTest(right, "f", "(400000)"), "assert f(2) == [0.0, 0.5]"
	both := plan(large, small)
	for _, c := range []struct {
		code      string
		want      events.Verdict
		inProcess bool
	}{
		{"def f(n):\n    return [i / 2.0 for i in range(n)]", events.VerdictPass, false},
		{"def f(n): return [i / 2 if i % 2 else i // 2 for i in range(n)]", events.VerdictPass, true}, // ints equal floats
		{"class L(list): pass\ndef f(n): return L(i / 2 for i in range(n))", events.VerdictPass, true},
		{"def f(n): return [i / 2 for i in range(n)][:399999]", events.VerdictFail, true},
		{"def f(n): return [i / 2 if i < 399999 else 0.0 for i in range(n)]", events.VerdictFail, true},
		{"def f(n): return 1 / 0 if n > 2 else [0.0, 0.5]", events.VerdictRaised, true},
	} {
		if got := grade(both, c.code); got[0].Verdict != c.want || got[0].InProcess != c.inProcess || got[1].Verdict != events.VerdictPass {
			t.Errorf("%s: %+v", c.code, got)
		}
	}
	// No other script passes because of a digest: its verdict may depend on more than
	// the values of its calls on the ground truth.
	if got := grade(plan("r = f(400000)\nassert len(r) == 400000 and f(int(r[4])) == f(2)", small), right); got[0].Verdict != events.VerdictPass {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		tests []string
		want  [2]events.Verdict
	}{
		{[]string{small, large}, [2]events.Verdict{events.VerdictFail, events.VerdictNotRun}},
		{[]string{large, small}, [2]events.Verdict{events.VerdictFail, events.VerdictFail}},
	} {
		early := plan(c.tests...)
		early.StopEarly(0)
		if got := grade(early, "def f(n): return [n]"); got[0].Verdict != c.want[0] || got[1].Verdict != c.want[1] {
			t.Errorf("%+v", got)
		}
	}
}

// TestStopEarly: a run ends at the first test that fails, but the tests that vote have
// verdicts. The tests after it have none, also where they have run.
func TestStopEarly(t *testing.T) { everywhere(t, quick, testStopEarly) }

func testStopEarly(t *testing.T, x *Executor) {
	const pass, fail, notRun = events.VerdictPass, events.VerdictFail, events.VerdictNotRun
	script := "assert f(2) in (2, 3)"
	for _, c := range []struct {
		tests []string
		votes int
		code  string
		want  []events.Verdict
	}{
		{[]string{"assert f(1) == 1", "assert f(2) == 2", "assert f(3) == 3", "assert f(4) == 4"}, 0, "def f(x): return min(x, 2)", []events.Verdict{pass, pass, fail, notRun}},
		{[]string{"assert f(1) == 1", "assert f(2) == 2", "assert f(3) == 3", "assert f(4) == 4"}, 3, "def f(x): return -x if x < 3 else x", []events.Verdict{fail, fail, pass, notRun}},
		{[]string{"assert f(1) == 1", "assert f(2) == 2", "assert f(3) == 3", "assert f(4) == 4"}, 9, "def f(x): return x % 2", []events.Verdict{pass, fail, fail, fail}},
		// The same call again, and scripts between the calls.
		{[]string{"assert f(1) == 1", "assert f(1) == 1", script, "assert f(3) == 0", "assert f(4) == 4", script}, 0, "def f(x): return x", []events.Verdict{pass, pass, pass, fail, notRun, notRun}},
		// The call of the second script is made after that of the check that fails.
		{[]string{"assert f(3) in (3, 4)", script, "assert f(3) == 4", "assert f(4) == 4"}, 0, "def f(x): return x", []events.Verdict{pass, pass, fail, notRun}},
		{[]string{script, "assert f(1) == 1", "assert f(1) == 2", "assert f(3) == 3"}, 0, "def f(x): return x", []events.Verdict{pass, pass, fail, notRun}},
		{[]string{"assert f(1) == 1", "assert f(2) == 2", "assert f(1) == 3", "assert f(4) == 4"}, 0, "def f(x): return x", []events.Verdict{pass, pass, fail, notRun}},
		{[]string{"assert f(1) == 1", "assert f(2) == 2", "assert f(3) == 3"}, 1, "import os\ndef f(x): return x if x < 2 else os._exit(1)", []events.Verdict{pass, events.VerdictRaised, notRun}},
	} {
		plan, err := x.PlanGolden(t.Context(), sandbox.Program{EntryPoint: "f"}, c.tests, 0)
		if err != nil {
			t.Fatal(err)
		}
		plan.StopEarly(c.votes)
		got, err := x.Grade(t.Context(), sandbox.Program{Code: c.code, EntryPoint: "f"}, plan)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v.Verdict != c.want[i] {
				t.Errorf("%s, %d votes, test %d: %+v, want %s", c.code, c.votes, i, v, c.want[i])
			}
		}
	}
}
