package execution

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	p := openPool(t, quick)
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
		{"truth", "assert f(True)", "pass", true},
		{"not", "assert not f(True)", "fail", true},
		{"wrapped", "assert set(f([1])) == {1}", "pass", true},
		{"nan is never equal", "assert f(float('nan')) == float('nan')", "fail", true},
		{"script", "def check(candidate):\n    assert candidate(1) == 1\ncheck(f)", "pass", true},
		{"failing script", "def check(candidate):\n    assert candidate(1) == 2, 'no'\ncheck(f)", "fail", true},
		{"raising script", "1/0", "raised", true},
		{"looping script", "f('loop')", "timeout", true},
		{"exiting script", "f('exit')", "raised", true},
		{"leaves the program alone", "f = None", "pass", true},
		{"after that", "assert f(1) is 1", "pass", true},
		{"test function", "from solution import f\ndef test_it():\n    assert f(1) == 1", "pass", true},
		{"failing test function", "from solution import *\ndef test_it():\n    assert f(1) == 2", "fail", true},
		{"unittest", "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.assertEqual(f(1), 1)", "pass", true},
		{"failing unittest", "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.assertEqual(f(1), 2)", "fail", true},
		{"raising unittest", "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): f()", "raised", true},
		{"no Python", "assert f(1) = 1", "raised", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := p.Check(t.Context(), code, "f", []string{"assert f(0) == 0", c.test, "assert f(3) == 3"})
			if err != nil {
				t.Fatal(err)
			}
			got[1].Detail = ""
			want := []events.GoldenVerdict{{Verdict: "pass"}, {Verdict: c.want, InProcess: c.inProcess}, {Verdict: "pass"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestCheckUnloadable(t *testing.T) {
	p := openPool(t, quick)
	got, err := p.Check(t.Context(), "1/0", "f", []string{"assert f(1) == 1", "assert f(1)"})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range got {
		if v.Verdict != events.VerdictNotRun || !strings.Contains(v.Detail, "ZeroDivisionError") {
			t.Errorf("got %+v", v)
		}
	}
}
