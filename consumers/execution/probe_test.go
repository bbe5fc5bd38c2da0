package execution

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// hits executes a group with probes of one kind, and returns those that each test hits.
func hits(t *testing.T, x *Executor, kind events.Probe, in *events.TestsSampled) *events.Probes {
	t.Helper()
	in.Posed.Plan.Probes = string(kind)
	out, err := x.Execute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Validate(); err != nil {
		t.Error(err)
	}
	if len(out.Probes) != 1 || len(out.Probes[0].Hits) != len(out.ProbedTests()) {
		t.Fatalf("%+v, tests %v", out.Probes, out.ProbedTests())
	}
	return &out.Probes[0]
}

// TestProbes: the mutants of x < 3 are ==, !=, <=, >, >=, 4 and 2, in this order. Each test is
// there once with its true value, also one that is wrong as stated. The answers make no
// difference, not even those that patch ast, compile or tracing.
func TestProbes(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, quick)
	const patches = `
import ast, builtins, operator, os, sys, tokenize
ast.parse = tokenize.generate_tokens = lambda *a, **k: 1 / 0
builtins.compile = builtins.exec = builtins.eval = lambda *a, **k: None
sys.settrace(lambda *a: None)
sys.modules["ast"] = None
try:
    open("mutants", "w").write("x")
    os.kill(os.getppid(), 9)
except Exception:
    pass
def f(x): return type("T", (), {"__eq__": lambda *a: True, "__lt__": lambda *a: True})()
`
	suites := [][]string{
		{"assert f(0) == True\nassert f(3) == True", "assert f('a') == 1\nassert f(2) == True"},
		{"assert f(3) == False\nassert f(0) == True", "?"},
	}
	for _, codes := range [][]string{{"def f(x): return x < 3", "def f(x): return True"}, {patches, patches}, {"def f(x) return", "1/0"}} {
		got := hits(t, x, events.ProbeMutants, sampled("def f(x): return x < 3", nil, codes, suites))
		// f(0), f(3), f(2)
		if diff := cmp.Diff([]events.Bits{{0b0011001}, {0b0110101}, {0b1011001}}, got.Hits); diff != "" || got.Total != 7 || got.Engine != mutantsEngine {
			t.Errorf("%d mutants of %s (-want +got):\n%s", got.Total, got.Engine, diff)
		}
		// The branches are those of x and of the loop. They do not depend on the tests before.
		const branched = "seen = []\ndef f(x):\n    for y in range(x):\n        if y in seen:\n            return True\n        seen.append(y)\n    return x < 3"
		got = hits(t, x, events.ProbeBranches, sampled(branched, nil, codes, suites))
		if diff := cmp.Diff([]events.Bits{{0b0010}, {0b1011}, {0b1011}}, got.Hits); diff != "" || got.Total != 4 || got.Engine != branchesEngine || got.Difficulty <= 0 {
			t.Errorf("%d branches of %s, difficulty %v (-want +got):\n%s", got.Total, got.Engine, got.Difficulty, diff)
		}
	}
}

// The suites of a lost answer are not probed. A mutant that runs over its time in one
// test is failed by none, and neither is one that does not load.
func TestProbesWithoutAVerdict(t *testing.T) {
	t.Parallel()
	behind := openExecutor(t, quick).pool
	x := New(sandbox.NewPool(behind.Config(), broken{behind}))
	in := sampled("def f(x): return -x", nil, []string{unlucky, "def f(x): return 1"}, [][]string{{"assert f(2) == -2"}, {"assert f(0) == 0"}})
	without, err := x.Execute(t.Context(), in)
	if err != nil || len(without.Probes) != 0 {
		t.Errorf("%v, probes without being asked for: %v", err, without.Probes)
	}
	// +x, ~x, not x, x
	if got := hits(t, x, events.ProbeMutants, in); got.Total != 4 || !cmp.Equal(got.Hits, []events.Bits{{0b0110}}) {
		t.Errorf("%+v", got)
	}
	// i < x has no end for f(0).
	endless := "from itertools import count\ndef f(x):\n    for i in count():\n        if i == x:\n            return i\n"
	got := hits(t, openExecutor(t, quick), events.ProbeMutants, sampled(endless, nil, []string{"def f(x): return x"}, [][]string{{"assert f(5) == 5\nassert f(0) == 0"}}))
	// By f(5) fail: no iteration, not, !=, <=, >, is not. By f(0): no iteration, not, !=, >, is not.
	// The others are <, >=, is.
	operators := []string{"no iteration", "not", "!=", "<", "<=", ">", ">=", "is", "is not"}
	if diff := cmp.Diff([]events.Bits{{0b00110111, 1}, {0b00100111, 1}}, got.Hits); diff != "" || got.Total != len(operators) {
		t.Errorf("%d mutants, want %q (-want +got):\n%s", got.Total, operators, diff)
	}
	// The decorator's mutant defines no f.
	decorated := "def twice(g):\n    global f\n    f = lambda x: 2 * g(x)\n    return f\n@twice\ndef g(x): return x\n"
	got = hits(t, openExecutor(t, quick), events.ProbeMutants, sampled(decorated, nil, []string{"def f(x): return x"}, [][]string{{"assert f(1) == 2"}}))
	// By f(1) fail 3 and 1 for 2, and 2-1, 2+1, 2%1, 2>>1, 2|1, 2&1, 2^1, not 2/1 and 2//1.
	if bits := got.Hits[0]; got.Total != 12 || bits.Has(11) || bits.Count() != 9 {
		t.Errorf("%d of %d mutants fail: %b", bits.Count(), got.Total, bits)
	}
}

// BenchmarkProbes executes a group of the paper's size, 8 answers with 8 suites of 8
// tests each, half of them distinct, without probes and with those of each kind.
// The cache has no group. cpu-ms is the core time of all processes.
func BenchmarkProbes(b *testing.B) {
	x := openExecutor(b, sandbox.Config{CacheBytes: -1})
	codes, suites := largeGroup()
	in := sampled("def f(x):\n    total = 0\n    for i in range(x):\n        if i % 2 == 0 or i > 0:\n            total = total + i\n    return total", nil, codes, suites)
	for _, kinds := range []string{"", string(events.ProbeMutants), string(events.ProbeBranches)} {
		b.Run("probes="+kinds, func(b *testing.B) {
			in.Posed.Plan.Probes = kinds
			began := sandboxtest.CPU(b) + sandboxtest.ChildrenCPU(b)
			for b.Loop() {
				if _, err := x.Execute(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((sandboxtest.CPU(b)+sandboxtest.ChildrenCPU(b)-began).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}
