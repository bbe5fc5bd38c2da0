package execution

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	x, hurried := openExecutor(t, generous), openExecutor(t, quick)
	const code = "def f(x):\n if x == 'loop':\n  while True: pass\n if x == 'exit': import os; os._exit(0)\n return x\ndef check(x): return 'mine'\n"
	for _, c := range []struct {
		name, test string
		want       events.Verdict
		inProcess  bool
	}{
		{"call", "assert f(1) == 1", "pass", false},
		{"wrong", "assert f(1) == 2", "fail", false},
		{"raises", "assert f() == 2", "raised", false},
		{"loops", "assert f('loop') == 2", "timeout", false},
		{"exits", "assert f('exit') == 2", "raised", false},
		{"computed answer", "assert f((1, 2)) == tuple([1, 1 + 1])", "pass", false},
		{"argument by name", "assert f(check(1)) == 'mine'", "pass", false},
		{"answer by name", "assert f('mine') == check(1)", "pass", true},
		{"truth", "assert f(True)", "pass", false},
		{"not", "assert not f(True)", "fail", false},
		{"wrapped", "assert set(f([1])) == {1}", "pass", false},
		{"nan is never equal", "assert f(float('nan')) == float('nan')", "fail", false},
		{"script", "def check(candidate):\n    assert candidate(1) == 1\ncheck(f)", "pass", false},
		{"failing script", "def check(candidate):\n    assert candidate(1) == 2, 'no'\ncheck(f)", "fail", false},
		{"raising script", "1/0", "raised", true},
		{"looping script", "f('loop')", "timeout", false},
		{"exiting script", "f('exit')", "raised", false},
		{"no call", "f = None", "not_run", false},
		{"after that", "assert f(1) is 1", "pass", false},
		{"test function", "from solution import f\ndef test_it():\n    assert f(1) == 1", "pass", false},
		{"failing test function", "from solution import *\ndef test_it():\n    assert f(1) == 2", "fail", false},
		{"unittest", "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.assertEqual(f(1), 1)", "pass", false},
		{"failing unittest", "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.assertEqual(f(1), 2)", "fail", false},
		{"raising unittest", "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): f()", "raised", false},
		{"calls that depend on calls", "assert f(f(f(2))) + f(1) == 3", "pass", false},
		{"expects an exception", "try:\n    f()\nexcept TypeError as e:\n    assert 'x' in str(e)\nelse:\n    assert False", "pass", false},
		{"float with a tolerance", "import math\nassert math.isclose(f(0.1) + 0.2, 0.3)", "pass", false},
		{"order does not matter", "assert sorted(f([2, 1])) == [1, 2]", "pass", false},
		{"nan as an argument", "assert f(float('nan')) != f(float('nan'))", "pass", false},
		{"loop over calls", "for i in range(50):\n    assert f(i) == i", "pass", false},
		{"loop until a value comes", "n = 0\nwhile f(n) < 5: n += 1\nassert n == 5", "pass", false},
		{"function as an argument", "assert f(len) is len", "pass", true},
		{"no Python", "assert f(1) = 1", "raised", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			on := x
			if c.want == events.VerdictTimeout {
				on = hurried
			}
			got, err := on.Check(t.Context(), code, "f", []string{"assert f(0) == 0", c.test, "assert f(3) == 3"})
			if err != nil {
				t.Fatal(err)
			}
			got[1].Detail = ""
			want := []events.GoldenVerdict{{Verdict: "pass"}, {Verdict: c.want, InProcess: c.inProcess}, {Verdict: "pass"}}
			if on == hurried { // its limit is short for the other two on a busy machine
				got, want = got[1:2], want[1:2]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestCheckUnloadable(t *testing.T) {
	x := openExecutor(t, generous)
	got, err := x.Check(t.Context(), "1/0", "f", []string{"assert f(1) == 1", "assert f(1)"})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range got {
		if v.Verdict != events.VerdictNotRun || !strings.Contains(v.Detail, "ZeroDivisionError") {
			t.Errorf("got %+v", v)
		}
	}
}

// TestLongScript: a value over the limit on values is compared inside.
func TestLongScript(t *testing.T) {
	x := openExecutor(t, generous)
	test := "assert f(2_000_000) == '" + strings.Repeat("x", 2_000_000) + "'"
	got, err := x.Check(t.Context(), "def f(n): return 'x' * n", "f", []string{test})
	if err != nil {
		t.Fatal(err)
	}
	if want := (events.GoldenVerdict{Verdict: "pass", InProcess: true}); got[0] != want {
		t.Errorf("got %+v", got[0])
	}
	// Its text is below the limit, but the weight of its value's parts is not.
	test = "assert f(90_000) == [" + strings.Repeat("'xxxx', ", 90_000) + "]"
	got, err = x.Check(t.Context(), "def f(n): return ['xxxx'] * n", "f", []string{test})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Verdict != events.VerdictPass {
		t.Errorf("got %+v", got[0])
	}
}

// TestManyCallsBehindConversions: an answer that is not known yet is turned into
// a set, which agrees with nothing. All calls come up nevertheless.
func TestManyCallsBehindConversions(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, generous)
	const test = "def check(candidate):\n for i in range(100):\n  out = set(candidate(i))\n  assert out == {i, i + 1}, out\n  assert sum(candidate(-i)) == 1 - 2 * i"
	for code, want := range map[string]events.Verdict{"def f(n): return [n, n + 1]": "pass", "def f(n): return [n, n + 1 + n // 99]": "fail"} {
		got, err := x.Check(t.Context(), code, "f", []string{test})
		if err != nil || got[0].Verdict != want || got[0].InProcess {
			t.Errorf("%s: got %+v, %v", code, got, err)
		}
	}
}

// TestGroundTruthSettles: a test that the ground truth passes only inside its process
// is run there for every answer. A test that it does not pass at all is not run.
func TestGroundTruthSettles(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, sandbox.Config{Workers: 1, CallTimeout: 20 * time.Second})
	tests := []string{
		"assert f(1_500_000) == 'x' * 1_500_000", "r = f(3)\nassert r == 'xxx'", "assert f(2) in ('yy',)", "assert hash(f) == hash(f) and f(0) == ''",
	}
	truth := sandbox.Program{Code: "def f(n): return 'x' * n", EntryPoint: "f"}
	plan, err := x.PlanGolden(t.Context(), truth, tests, 0)
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{
		truth.Code:                           "pass inside, pass, fail, pass",
		"def f(n): return 'x' * min(n, 999)": "fail inside, pass, fail, pass",
		"def f(n): return object()":          "fail inside, fail, fail, fail",
	} {
		verdicts, err := x.Grade(t.Context(), sandbox.Program{Code: code, EntryPoint: "f"}, plan)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range verdicts {
			word := string(v.Verdict)
			if v.InProcess {
				word += " inside"
			}
			got = append(got, word)
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s: -want +got\n%s", code, diff)
		}
	}
	verdicts, err := x.CheckTruth(t.Context(), truth.Code, "f", tests[:1])
	if err != nil || verdicts[0] != (events.GoldenVerdict{Verdict: events.VerdictPass, InProcess: true}) {
		t.Errorf("got %+v, %v", verdicts, err)
	}
}

// TestScriptStyles: scripts as pytest, unittest and problem sets write them, on
// a program that is right and one that is wrong.
func TestScriptStyles(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, generous)
	const right = "class Odd(ValueError): pass\nlimit = 3\ndef half(n):\n if n % 2: raise Odd(n)\n return n // 2\n" +
		"def f(n):\n if n < 0: raise ValueError('below zero: %d' % n)\n return n / 10\n"
	wrong := strings.NewReplacer("below zero", "negative", "n / 10", "n / 9").Replace(right)
	for _, c := range []struct {
		name, test string
		inProcess  bool
	}{
		{"pytest class", "class TestF:\n def setup_method(self): self.n = 5\n def test_a(self): assert f(self.n) == 0.5", false},
		{"pytest raises", "import pytest\ndef test_f():\n with pytest.raises(ValueError, match='below zero'): f(-1)", false},
		{"pytest raises, the error itself", "import pytest\ndef test_f():\n with pytest.raises(ValueError) as e: f(-1)\n assert str(e.value) == 'below zero: -1'", false},
		{"pytest approx", "from pytest import approx\ndef test_f(): assert f(3) == approx(0.3) and [f(1)] == approx([0.1], abs=1e-3)", false},
		{"pytest parametrize", "import pytest\n@pytest.mark.parametrize('n, want', [(1, 0.1), pytest.param(2, 0.2, id='two')])\ndef test_f(n, want): assert f(n) == want", false},
		{"pytest fixture", "import pytest\n@pytest.fixture\ndef five():\n yield 5\ndef test_f(five): assert f(five) == 0.5", false},
		{"isclose", "import math\nassert math.isclose(f(3), 0.3, rel_tol=1e-3)", false},
		{"a difference", "assert abs(f(3) - 0.3) < 1e-6", false},
		{"almost equal", "import unittest\nclass T(unittest.TestCase):\n def test(self):\n  self.assertAlmostEqual(f(3), 0.3)\n  with self.assertRaisesRegex(ValueError, 'below'): f(-1)", false},
		{"try and except", "try:\n f(-1)\n assert False\nexcept ValueError as e:\n assert e.args == ('below zero: -1',)", false},
		{"check that nobody calls", "def check(candidate):\n assert candidate(3) == 0.3", false},
		{"not ==", "assert f(3) < 0.31 and f(3) != 0.33 and f(30) is not None and 0.3 in [f(3)]", false},
		{"solution module", "import solution\nassert solution.f(3) == 0.3", false},
		{"an exception of the program", "from solution import Odd, f, half\ntry: half(3)\nexcept Odd: assert f(3) == 0.3", true},
		{"a constant of the program", "import solution\nassert f(solution.limit) == 0.3", true},
		{"another function", "assert half(4) == 2 and f(3) == 0.3", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for code, want := range map[string]events.Verdict{right: "pass", wrong: "fail"} {
				got, err := x.Check(t.Context(), code, "f", []string{c.test})
				if err != nil {
					t.Fatal(err)
				}
				if got[0].Verdict != want || got[0].InProcess != c.inProcess {
					t.Errorf("got %+v, want %s", got[0], want)
				}
			}
		})
	}
}

// TestObjects: the entry point is a class, and its objects stay with the program.
func TestObjects(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, generous)
	const right = `
class Cache:
    def __init__(self, size): self.size, self.held = size, {}
    def put(self, key, value):
        self.held[key] = value
        while len(self.held) > self.size: del self.held[next(iter(self.held))]
        return self
    def get(self, key): return self.held[key]
    def names(self): return list(self.held)
    def __len__(self): return len(self.held)
    def __contains__(self, key): return key in self.held
    def __iter__(self): return iter(self.held)
    def __getitem__(self, key): return self.held[key]
    def __setitem__(self, key, value): self.put(key, value)
    def __eq__(self, other): return True
`
	wrong := strings.Replace(right, "next(iter(self.held))", "list(self.held)[-1]", 1)
	for name, test := range map[string]string{
		"methods":    "c = Cache(2)\nfor i in range(4): c.put(i, i * i)\nassert c.names() == [2, 3]",
		"exceptions": "import pytest\ndef test():\n c = Cache(1)\n c.put('a', 1)\n c.put('b', 2)\n with pytest.raises(KeyError): c.get('a')\n assert c.get('b') == 2",
		"operators":  "c = Cache(1)\nc['a'] = 1\nc['b'] = 2\nassert len(c) == 1 and 'b' in c and list(c) == ['b'] and c['b'] == 2",
		"attributes": "c = Cache(1)\nassert c.size == 1 and c.size + 1 == 2 and c.size > 0\nc.size = 2\nfor k in 'abc': c.put(k, k)\nassert c.held == {'b': 'b', 'c': 'c'}",
		"chained":    "assert Cache(1).put('a', 1).put('b', 2).names() == ['b']",
		"unittest":   "import unittest\nclass T(unittest.TestCase):\n def setUp(self): self.c = Cache(1)\n def test(self):\n  self.c.put(1, 2)\n  self.c.put(2, 3)\n  self.assertEqual(self.c.get(2), 3)",
	} {
		t.Run(name, func(t *testing.T) {
			for code, want := range map[string]events.Verdict{right: "pass", wrong: "fail"} {
				got, err := x.Check(t.Context(), code, "Cache", []string{test})
				if err != nil {
					t.Fatal(err)
				}
				if v := got[0]; (v.Verdict == events.VerdictPass) != (want == events.VerdictPass) || v.InProcess {
					t.Errorf("got %+v, want %s", v, want)
				}
			}
		})
	}
	// Whether an object equals another is not the program's word.
	got, err := x.Check(t.Context(), right, "Cache", []string{"assert Cache(1) == 1"})
	if err != nil || got[0].Verdict != events.VerdictFail {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestScriptsApart runs scripts on programs that only the process boundary keeps
// from passing, or that need more than a value to be carried over it.
func TestScriptsApart(t *testing.T) {
	t.Parallel()
	x, hurried := openExecutor(t, generous), openExecutor(t, quick)
	const liar = "class Any:\n def __eq__(s, o): return True\n __ne__ = __bool__ = __contains__ = __lt__ = __eq__\n __hash__ = object.__hash__\n"
	for _, c := range []struct {
		name, code, entry, test string
		want                    events.Verdict
	}{
		{"always equal", liar + "def f(x): return Any()", "f", "r = f(1)\nassert r == 2", "fail"},
		{"always equal in a list", liar + "def f(x): return [Any()]", "f", "assert f(1)[0] == 2", "fail"},
		{"contains everything", liar + "def f(x): return Any()", "f", "assert 2 in f(1)", "raised"},
		{"contains everything, as a list", liar + "def f(x): return [Any()]", "f", "assert 2 in f(1)", "fail"},
		{"contains everything and yields nothing", liar + "class All(Any):\n def __iter__(s): return iter(())\ndef f(x): return All()", "f", "assert 2 in f(1)", "fail"},
		{"contains it", "def f(x): return iter([1, x])", "f", "assert 2 in f(2)", "pass"},
		{"objects one by one", "class A:\n def __init__(s, n): s.n = n\ndef f(x): return [A(n) for n in range(x)]", "f", "assert [a.n for a in f(3)] == [0, 1, 2]", "pass"},
		{"always less", liar + "def f(x): return Any()", "f", "assert abs(f(1) - 2) < 1e-6", "raised"},
		{"patches unittest", "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\ndef f(x): return 3", "f", "import unittest\nclass T(unittest.TestCase):\n def test(self): self.assertEqual(f(1), 2)", "fail"},
		{"raises AssertionError away", "import builtins\nclass N(Exception): pass\nbuiltins.AssertionError = N\ndef f(x): return 3", "f", "assert f(1) in (1, 2)", "fail"},
		{"exits", "import os\ndef f(x): os._exit(0)", "f", "def check(c):\n assert c(1) == 1\ncheck(f)", "raised"},
		{"hangs", "def f(x):\n while True: pass", "f", "assert f(1) or True", "timeout"},
		{"raises its own kind", "class Mine(Exception): pass\ndef f(x): raise Mine('no')", "f", "try: f(1)\nexcept RuntimeError as e: assert 'Mine: no' in str(e)", "pass"},
		{"changes its argument", "def f(x): x.sort()", "f", "l = [3, 1, 2]\nassert f(l) is None\nassert l == [1, 2, 3]", "pass"},
		{"changes what is nested", "def f(x): x['a'].append(1)", "f", "d = {'a': []}\ninner = d['a']\nf(d)\nassert inner == [1]", "pass"},
		{"does not change it", "def f(x): return sorted(x)", "f", "l = [3, 1]\nf(l)\nassert l == [1, 3]", "fail"},
		{"generator", "def f(x):\n for i in range(x): yield i", "f", "assert list(f(3)) == [0, 1, 2]\nassert sum(f(4)) == 6", "pass"},
		{"method", "class Solution:\n def f(self, x): return x + 1", "Solution().f", "s = Solution()\nassert s.f(1) in (2, 3)", "pass"},
		{"wrong method", "class Solution:\n def f(self, x): return x - 1", "Solution().f", "from solution import *\ndef test_f(): assert Solution().f(1) == 2", "fail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			on := x
			if c.want == events.VerdictTimeout {
				on = hurried
			}
			got, err := on.Check(t.Context(), c.code, c.entry, []string{c.test})
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Verdict != c.want || got[0].InProcess {
				t.Errorf("got %+v, want %s", got[0], c.want)
			}
		})
	}
}

// TestChildHoldsOnlyCalls looks through everything the collector knows and
// through the frames above the candidate for anything but its own call.
func TestChildHoldsOnlyCalls(t *testing.T) {
	x := openExecutor(t, generous)
	code := `
import gc, sys
def f():
    seen, frame = [], sys._getframe()
    while frame:
        seen.append(repr(frame.f_locals))
        frame = frame.f_back
    text = " ".join(seen) + repr(gc.get_objects())
    return "-".join(["secret", "expectation"]) in text, "f()" in text
`
	verdicts, err := x.Check(t.Context(), code, "f", []string{"assert f() == 'secret-expectation'", "assert f() == (False, True)"})
	if err != nil {
		t.Fatal(err)
	}
	if verdicts[0].Verdict != "fail" || verdicts[1].Verdict != "pass" || verdicts[1].InProcess {
		t.Errorf("got %+v", verdicts)
	}
}

// TestLargeValuesInScripts: a program with too many values for a script's process
// fails the script. It is no failure of the sandbox, and no other program's affair.
func TestLargeValuesInScripts(t *testing.T) {
	x := openExecutor(t, quick)
	const test = "def check(c):\n for i in range(150): assert len(c(i)) != 9\n"
	for code, want := range map[string]events.Verdict{
		"def f(x): return 'a'":                              events.VerdictPass,
		"def f(x): return str(x) + '\\U0001f600' * 400_000": events.VerdictRaised,
	} {
		verdicts, err := x.Check(t.Context(), code, "f", []string{test, test + "#"})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range verdicts {
			if v.Verdict != want || v.InProcess {
				t.Errorf("%s: got %+v, want %s", code, v, want)
			}
		}
	}
}
