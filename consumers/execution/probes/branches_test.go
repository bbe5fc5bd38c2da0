package probes

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/execution/sandbox"
)

// The branches and the calls that take them were counted by hand.
func TestTakenBranches(t *testing.T) {
	pool := open(t)
	for _, c := range []struct {
		code, calls, want string
	}{
		{"def f(x):\n    return x\n", "f(1)", ""},
		{"def f(x):\n    if x > 0:\n        return 1\n    elif x:\n        return 2\n    return 3\n", "f(1) f(-1) f(0)", "1000 0110 0101"},
		{"def f(x):\n    return 1 if x else 2\n", "f(0) f(1)", "01 10"},
		{"def f(x):\n    return x and x[0] or 7\n", "f([]) f([0]) f([2])", "0101 0110 1010"},
		{"def f(x):\n    while x > 0:\n        x -= 1\n    while True:\n        return x\n", "f(0) f(2)", "01 11"},
		{"def f(x):\n    for y in x:\n        if y:\n            break\n    else:\n        return 0\n    return y\n", "f([]) f([0]) f([0,3])", "0100 1101 1011"},
		{"def f(x):\n    return [y for y in x if y]\n", "f([]) f([0]) f([1])", "0100 1101 1110"},
		{"def f(x):\n    try:\n        return 1 // x\n    except ZeroDivisionError:\n        return 0\n", "f(0) f(1)", "1 0"},
		// The names of a class are renamed, and a program does not remember the call before.
		{"class C:\n    __seen = []\n    def f(self, x):\n        if x in self.__seen:\n            return 1\n        self.__seen.append(x)\n        return 1\nf = C().f\n", "f(1) f(1)", "01 01"},
		{"def f(x):\n    yield from (y for y in x if y)\n", "list(f([1]))", "1110"},
	} {
		calls := strings.Fields(c.calls)
		got, err := TakenBranches(t.Context(), pool, c.code, calls, sandbox.Job{})
		if err != nil {
			t.Errorf("%q: %v", c.code, err)
			continue
		}
		if diff := cmp.Diff(c.want, strings.Join(got.Taken, " ")); diff != "" || c.want != "" && got.Total != len(got.Taken[0]) {
			t.Errorf("%q: %d branches (-want +got):\n%s", c.code, got.Total, diff)
		}
	}
	got, err := TakenBranches(t.Context(), pool, "def f(x):\n"+strings.Repeat("    x = x or 1\n", 200)+"    return x\n", []string{"f(1)", "f(1/0)"}, sandbox.Job{})
	if err != nil || got.Total != 256 || got.Taken[0] != strings.Repeat("10", 128) || got.Taken[1] != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := TakenBranches(t.Context(), pool, "x = (", nil, sandbox.Job{}); err == nil || !strings.Contains(err.Error(), "SyntaxError") {
		t.Errorf("branches of no program: %v", err)
	}
}

// The lines and the calls that take them were counted by hand. Lines of the module, of a
// class and of decorators run when the program is loaded.
func TestTakenLines(t *testing.T) {
	pool := open(t)
	for _, c := range []struct {
		code, calls, want string
	}{
		{"def f(x):\n    \"\"\"Doc.\"\"\"\n    if x:\n        return 1\n    return 2\n", "f(0) f(1)", "1101 1110"},
		{"from __future__ import annotations\nimport math\n\ndef f(x):\n    y = (x +\n         1)\n    return y\n", "f(1)", "1111"},
		{"class C:\n    \"Doc.\"\n    a = 1\n    def f(self):\n        global z\n        z = 1\n        return 1\nf = C().f\n", "f() f(1)", "1111111 "},
		{"def f(x):\n    try:\n        y = 1 // x\n    except ZeroDivisionError:\n        y = 0\n    else:\n        y += 1\n    finally:\n        x = y\n    return x\n", "f(0) f(1)", "1111011 1110111"},
		{"def f(x):\n    for y in x:\n        if y: return y\n        elif y is None:\n            break\n    while x: x = 0\n", "f([]) f([1]) f([None])", "110001 111000 111111"},
	} {
		got, err := TakenLines(t.Context(), pool, c.code, strings.Fields(c.calls), sandbox.Job{})
		if err != nil {
			t.Errorf("%q: %v", c.code, err)
			continue
		}
		if diff := cmp.Diff(c.want, strings.Join(got.Lines, " ")); diff != "" || got.TotalLines != len(got.Lines[0]) {
			t.Errorf("%q: %d lines (-want +got):\n%s", c.code, got.TotalLines, diff)
		}
		same, err := TakenBranches(t.Context(), pool, c.code, strings.Fields(c.calls), sandbox.Job{})
		if diff := cmp.Diff(same.Taken, got.Taken); err != nil || diff != "" || same.TotalLines != 0 {
			t.Errorf("%q: %v, %d lines; other branches without lines (-) than with them:\n%s", c.code, err, same.TotalLines, diff)
		}
	}
}

// The difficulty was computed by hand.
func TestDifficulty(t *testing.T) {
	pool := open(t)
	for code, want := range map[string]float64{
		// No operator: Halstead's difficulty is 0.
		"def f(x):\n    return x\n": 0,
		// +, < and the operands x, 1, x, 2: difficulty 2*4/(2*3), volume 6*log2(5), 2 decisions,
		// 3 lines.
		"def f(x):\n    # a comment\n    if x < 2:\n        return x + 1\n": math.Sqrt((4.0 / 3) / (4.0/3 + 10) * (1 - (171-5.2*math.Log(6*math.Log2(5))-0.23*2-16.2*math.Log(3))/171)),
	} {
		got, err := TakenBranches(t.Context(), pool, code, nil, sandbox.Job{})
		if err != nil || math.Abs(got.Difficulty-want) > 1e-12 {
			t.Errorf("%q: %+v, %v; want %v", code, got, err, want)
		}
	}
}
