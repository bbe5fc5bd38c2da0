package execution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// Each answer that loads runs on the tests of all suites. A test that is wrong as
// stated is there with both values, and equal tests of two suites are one. The
// verdicts of the suites are those of a group without a cross.
func TestCross(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, quick)
	in := sampled(
		"def f(x): return abs(x)", nil,
		[]string{"def f(x): return x if x > 0 else -x", "def f(x): return x", "def f(x) return x"},
		[][]string{
			{"assert f(1) == 1\nassert f(-2) == -2", "assert f(3) == 3"},
			{"assert f(-4) == 4\nassert f('a') == 1", ""},
			{"assert f(1) == 1\nassert f(0) == 0", ""},
		})
	without, err := x.Execute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	in.Posed.Plan.Cross = true
	with, err := x.Execute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := with.Validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(without.Answers, with.Answers); without.Cross != nil || diff != "" {
		t.Errorf("cross %v without being asked for, answers (-without +with):\n%s", without.Cross, diff)
	}
	tests := []events.CrossTest{{Call: "f(1)", Value: "1"}, {Call: "f(3)", Value: "3"}, {Call: "f(-4)", Value: "4"}, {Call: "f(-2)", Value: "2"}, {Call: "f(-2)", Value: "-2"}, {Call: "f(0)", Value: "0"}}
	if diff := cmp.Diff(tests, with.CrossTests()); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
	// f(0) is the last test; answer 0 returns -0, which is 0.
	want := &events.Cross{Tests: 6, Passed: []events.Bits{{0b101111}, {0b110011}, nil}, Failed: []events.Bits{{0b010000}, {0b001100}, nil}}
	if diff := cmp.Diff(want, with.Cross); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// An answer that is lost is not part of the cross, and neither are its suites.
func TestCrossWithoutALostAnswer(t *testing.T) {
	behind := openExecutor(t, quick).pool
	x := New(sandbox.NewPool(behind.Config(), broken{behind}))
	in := sampled("def f(x): return x", nil, []string{unlucky, "def f(x): return 1"}, [][]string{{"assert f(2) == 2"}, {"assert f(1) == 1"}})
	in.Posed.Plan.Cross = true
	out, err := x.Execute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := &events.Cross{Tests: 1, Passed: []events.Bits{nil, {1}}, Failed: []events.Bits{nil, {0}}}
	if diff := cmp.Diff(want, out.Cross); diff != "" || out.Answers[0].Failure == "" {
		t.Errorf("failure %q, -want +got\n%s", out.Answers[0].Failure, diff)
	}
}

// BenchmarkCross executes a group of the paper's size, 8 answers with 8 suites of
// 8 tests each, half of them distinct, with and without a cross. The cache has no
// group.
func BenchmarkCross(b *testing.B) {
	x := openExecutor(b, sandbox.Config{CacheBytes: -1})
	codes, suites := largeGroup()
	in := sampled("def f(x):\n    return sum(range(x))", nil, codes, suites)
	for _, cross := range []bool{false, true} {
		b.Run(fmt.Sprintf("cross=%t", cross), func(b *testing.B) {
			in.Posed.Plan.Cross = cross
			var bytes int
			for b.Loop() {
				out, err := x.Execute(b.Context(), in)
				if err != nil {
					b.Fatal(err)
				}
				m, err := events.Encode(events.New("r", in.Posed.Plan.GroupID(), "x", time.Unix(1, 0).UTC(), out))
				if err != nil {
					b.Fatal(err)
				}
				bytes = len(m.Data)
			}
			b.ReportMetric(float64(bytes), "event-bytes")
		})
	}
}

// largeGroup returns the answers and suites of a group of the paper's size: 8 answers with
// 8 suites of 8 tests each, half of them distinct.
func largeGroup() (codes []string, suites [][]string) {
	suites = make([][]string, 8)
	for m := range 8 {
		codes = append(codes, fmt.Sprintf("def f(x):\n    return sum(i for i in range(x)) + (x == %d)", 16*m))
		for n := range 8 {
			var suite strings.Builder
			for k := range 8 {
				at := (64*m + 8*n + k) / 2
				fmt.Fprintf(&suite, "assert f(%d) == %d\n", at, at*(at-1)/2)
			}
			suites[m] = append(suites[m], suite.String())
		}
	}
	return codes, suites
}
