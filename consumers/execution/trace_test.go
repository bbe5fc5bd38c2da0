package execution

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const tracedProgram = `import random
def f(n, step=1):
    total = 0
    while n > 0:
        total += n
        n -= step
    for _ in range(2): total += 1
    return [total]
`

// The steps of a call were written down by hand. A test that the ground truth does not pass,
// that is no call with literals, or that has too many steps is left out.
func TestTrace(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, quick)
	got, err := x.Trace(t.Context(), tracedProgram, "f", []string{
		"assert f(2) == [5]", "assert f(1) == [4]", "assert f(500) == [125252]", "assert sum(f(1)) == 3", "assert f(1, step=3) == [3]", "assert f(0) == [2]",
	}, 5)
	if err != nil {
		t.Fatal(err)
	}
	state := func(pairs ...string) map[string]string {
		s := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			s[pairs[i]] = "(" + pairs[i+1] + ", 'int')"
		}
		return s
	}
	want := []Trace{{
		Call: "f(2)", Arguments: "(2,)", Value: "[5]", Lines: []int{3, 4, 5, 6, 4, 5, 6, 4, 7, 8},
		States: []map[string]string{
			state("n", "2", "step", "1"), state("n", "2", "step", "1", "total", "0"), state("n", "2", "step", "1", "total", "0"),
			state("n", "2", "step", "1", "total", "2"), state("n", "1", "step", "1", "total", "2"), state("n", "1", "step", "1", "total", "2"),
			state("n", "1", "step", "1", "total", "3"), state("n", "0", "step", "1", "total", "3"), nil, state("_", "1", "n", "0", "step", "1", "total", "5"),
		},
	}, {
		Call: "f(1, step=3)", Value: "[3]", Lines: []int{3, 4, 5, 6, 4, 7, 8},
		States: []map[string]string{
			state("n", "1", "step", "3"), state("n", "1", "step", "3", "total", "0"), state("n", "1", "step", "3", "total", "0"),
			state("n", "1", "step", "3", "total", "1"), state("n", "-2", "step", "3", "total", "1"), nil, state("_", "1", "n", "-2", "step", "3", "total", "3"),
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// Steps that depend on chance are left out, the first call of a method and of a
	// function that calls itself is followed, and a value without a short literal is no state.
	for _, c := range []struct {
		code, entry, test string
		lines             []int
	}{
		{"import random\ndef f(x):\n    y = random.random()\n    return x\n", "f", "assert f(1) == 1", nil},
		{"def f(x):\n    y = {str(i) for i in range(9)}\n    for z in y:\n        w = z\n    return x\n", "f", "assert f(1) == 1", nil},
		{"class C:\n    def __init__(self):\n        self.x = 1\n    def f(self, x):\n        return x\n", "C().f", "assert C().f(1) == 1", []int{5}},
		{"def f(x):\n    if x:\n        return 1 + f(x - 1)\n    return 0\n", "f", "assert f(2) == 2", []int{2, 3}},
		{"def f(x):\n    try:\n        return 1 // x\n    except ZeroDivisionError:\n        return 0\n", "f", "assert f(0) == 0", []int{2, 3, 4, 5}},
		{"class L(list):\n    def __repr__(self):\n        return '7'\ndef f(x):\n    y = L()\n    return (\n        x +\n        1)\n", "f", "assert f(0) == 1", []int{5, 6}},
		{"import sys\ndef f(x):\n    sys.settrace(None)\n    return x\n", "f", "assert f(1) == 2", nil},
	} {
		traces, err := x.Trace(t.Context(), c.code, c.entry, []string{c.test}, 5)
		if err != nil {
			t.Errorf("%q: %v", c.code, err)
			continue
		}
		var lines []int
		for _, trace := range traces {
			lines = append(lines, trace.Lines...)
			for _, state := range trace.States {
				for _, name := range []string{"self", "y"} {
					if state[name] != "" {
						t.Errorf("%q: %s is %s", c.code, name, state[name])
					}
				}
			}
		}
		if diff := cmp.Diff(c.lines, lines); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.code, diff)
		}
	}
}
