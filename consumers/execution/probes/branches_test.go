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
