package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// sampled makes a group: one row of suites per code.
func sampled(solution string, historical []events.HistoricalTest, codes []string, suites [][]string) *events.TestsSampled {
	in := &events.TestsSampled{
		Posed: events.ProblemPosed{
			Plan: events.Plan{
				Purpose: events.PurposeTrain, Step: 1, Groups: 1, Answers: len(codes), Suites: len(suites[0]), Tests: 3, Temperature: 1,
			},
			Problem:    events.Problem{ID: "p", Question: "Double the number.", EntryPoint: "f", Solution: solution},
			Historical: historical,
		},
		CodeVersion: 3, Version: 4, Codes: codes, Prompts: make([]events.Int32s, len(codes)),
	}
	for _, row := range suites {
		var completions []events.Completion
		for _, text := range row {
			completions = append(completions, events.Completion{Text: text, Finish: events.FinishStop})
		}
		in.Suites = append(in.Suites, completions)
	}
	return in
}

// transcript writes the outcome of a group, one line per test.
func transcript(out *events.CodeExecuted) string {
	var b strings.Builder
	for i, a := range out.Answers {
		fmt.Fprintf(&b, "answer %d: loads %t, historical %v\n", i, a.Loads, a.Historical)
		for j, s := range a.Suites {
			kept, wrong, discarded := s.Counts()
			fmt.Fprintf(&b, "  suite %d: %d kept, %d wrong as stated, %d discarded, %d of %d unprintable\n", j, kept, wrong, discarded, s.Unprintable, s.Chars)
			for _, t := range s.Tests {
				fmt.Fprintf(&b, "    %s: %s, expected %q, wrong %t, %s\n", t.Source, t.Status, t.Expected, t.Wrong, t.Verdict)
			}
		}
	}
	return b.String()
}

func TestExecute(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, sandbox.Config{Workers: 2, CallTimeout: quick.CallTimeout})
	in := sampled(
		"def f(x):\n return [2 * v for v in x] if x != [0] else 1/0",
		[]events.HistoricalTest{{Call: "f([5])", Expected: "[10]", Count: 2}, {Call: "f([])", Expected: "[]", Count: 1}},
		[]string{
			"def f(x): return [v + v for v in x]",
			"def f(x):\n while len(x) > 1: pass\n x[0] *= 2\n return x",
			"def f(x) return x",
		},
		[][]string{
			{"```python\nassert f([1]) == [2]\nassert f([1, 2]) == [2, 5]\n```", "assert f([0]) == [0]\nassert f([3]) == [6]\nassert f([ 3 ]) == [7]\nf(1)"},
			{"```\nassert f([1]) == [2]\nassert f([1, 2]) == [2, 4]\n```", "no tests, é"},
			{"assert f([1]) == [2]", ""},
		})
	out, err := x.Execute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Validate(); err != nil {
		t.Error(err)
	}
	want := `answer 0: loads true, historical [pass pass]
  suite 0: 2 kept, 1 wrong as stated, 0 discarded, 0 of 61 unprintable
    assert f([1]) == [2]: kept, expected "[2]", wrong false, pass
    assert f([1, 2]) == [2, 5]: kept, expected "[2, 4]", wrong true, pass
  suite 1: 1 kept, 0 wrong as stated, 3 discarded, 0 of 69 unprintable
    assert f([0]) == [0]: raised, expected "", wrong false, not_run
    assert f([3]) == [6]: kept, expected "[6]", wrong false, pass
    assert f([ 3 ]) == [7]: duplicate, expected "", wrong false, not_run
    f(1): unparsable, expected "", wrong false, not_run
answer 1: loads true, historical [pass raised]
  suite 0: 2 kept, 0 wrong as stated, 0 discarded, 0 of 55 unprintable
    assert f([1]) == [2]: kept, expected "[2]", wrong false, pass
    assert f([1, 2]) == [2, 4]: kept, expected "[2, 4]", wrong false, timeout
  suite 1: 0 kept, 0 wrong as stated, 1 discarded, 1 of 11 unprintable
    no tests, é: unparsable, expected "", wrong false, not_run
answer 2: loads false, historical [not_run not_run]
  suite 0: 1 kept, 0 wrong as stated, 0 discarded, 0 of 20 unprintable
    assert f([1]) == [2]: kept, expected "[2]", wrong false, not_run
  suite 1: 0 kept, 0 wrong as stated, 0 discarded, 0 of 0 unprintable
`
	if diff := cmp.Diff(want, transcript(out)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if out.CodeVersion != 3 || out.TestVersion != 4 || out.ProblemID != "p" || out.Given {
		t.Errorf("wrong head: %+v", out)
	}
}

// TestGroundTruthPassesEverySuite: an expectation comes from the ground truth,
// and an answer that is the ground truth passes with every suite.
func TestGroundTruthPassesEverySuite(t *testing.T) {
	x := openExecutor(t, quick)
	const solution = "import random\ncache = []\ndef f(x):\n cache.append(x)\n return random.Random(4).random(), {str(v) for v in x}, x"
	suite := "assert f([1]) == 0\nassert f(list(range(5))) == 0\nassert f('abc') == 0\nassert f({'b', 'a'}) == 0\nassert f([x for x in {3, 1, 2}]) == 0"
	out, err := x.Execute(t.Context(), sampled(solution, nil, []string{solution}, [][]string{{suite}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range out.Answers[0].Suites[0].Tests {
		if test.Status != events.StatusKept || test.Verdict != events.VerdictPass {
			t.Errorf("%s: %s, %s %s", test.Source, test.Status, test.Verdict, test.Detail)
		}
	}
}

func TestExecuteWithoutSuites(t *testing.T) {
	x := openExecutor(t, quick)
	in := sampled("def f(x): return x", nil, []string{"def f(x): return x", "def f(x): return -x"}, [][]string{{}, {}})
	in.Posed.Problem.Golden = []string{"assert f(0) == 0", "assert f(1) == 1", "for i in range(3):\n    assert f(i) == i"}
	out, err := x.Execute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]events.GoldenVerdict{
		{{Verdict: "pass"}, {Verdict: "pass"}, {Verdict: "pass"}},
		{{Verdict: "pass"}, {Verdict: "fail", Detail: "returned -1"}, {Verdict: "fail", Detail: "AssertionError"}},
	}
	for i := range want {
		if diff := cmp.Diff(want[i], out.Answers[i].Golden); diff != "" {
			t.Errorf("answer %d: -want +got\n%s", i, diff)
		}
	}
}

func TestGroundTruthErrors(t *testing.T) {
	x := openExecutor(t, quick)
	codes, suites := []string{"def f(x): return x"}, [][]string{{"assert f(1) == 1"}}
	for name, in := range map[string]*events.TestsSampled{
		"does not load":              sampled("def f(x) return x", nil, codes, suites),
		"does not define":            sampled("def g(x): return x", nil, codes, suites),
		"historical is no literal":   sampled("def f(x): return x", []events.HistoricalTest{{Call: "f(1)", Expected: "g()"}}, codes, suites),
		"historical is not complete": sampled("def f(x): return x", []events.HistoricalTest{{Call: "f(1)", Expected: "[1"}}, codes, suites),
	} {
		if out, err := x.Execute(t.Context(), in); !errors.Is(err, ErrGroundTruth) {
			t.Errorf("%s: got %+v, %v; want ErrGroundTruth", name, out, err)
		}
	}
}

// TestTruthInParts: the values of a ground truth that counts its calls depend on
// the calls, not on how many processes there are at a time.
func TestTruthInParts(t *testing.T) {
	problem := &events.Problem{ID: "p", EntryPoint: "f", Solution: "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n"}
	var calls []string
	const each = truthCalls - 6
	for i := range 3 * each {
		calls = append(calls, fmt.Sprintf("f(%d)", i))
	}
	for _, workers := range []int{1, 2} {
		truth, err := openExecutor(t, sandbox.Config{Workers: workers, CacheBytes: -1}).askTruth(t.Context(), problem, calls, false, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for i, call := range calls {
			want := int64(i%each + 1)
			if got := truth.outcomes[call]; got.Value == nil || !literal.Equal(got.Value, literal.NewInt(want)) {
				t.Fatalf("%d workers: %s is %+v, want %d", workers, call, got, want)
			}
		}
	}
}

// broken is a pool as the backend of another one. It fails on unlucky.
type broken struct{ *sandbox.Pool }

const unlucky = "def f(x): return x # unlucky"

func (b broken) Do(ctx context.Context, _ sandbox.Slot, j sandbox.Job) (sandbox.Session, error) {
	if j.Code == unlucky {
		return sandbox.Session{}, &sandbox.Error{Op: "test", Err: errors.New("no fork server")}
	}
	return b.Pool.Do(ctx, j)
}

func (broken) Close() error { return nil } // another test may use the pool

func TestFailureMasksTheAnswer(t *testing.T) {
	behind := openExecutor(t, quick).pool
	x := New(sandbox.NewPool(behind.Config(), broken{behind}))
	good := "def f(x): return x"
	suites := [][]string{{"assert f(1) == 1"}, {"assert f(1) == 1"}}
	out, err := x.Execute(t.Context(), sampled(good, nil, []string{unlucky, good}, suites))
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Validate(); err != nil {
		t.Error(err)
	}
	if out.Answers[0].Failure == "" || out.Answers[1].Failure != "" || out.Answers[1].Suites[0].Tests[0].Verdict != events.VerdictPass {
		t.Errorf("got %+v", out.Answers)
	}
	var failed *sandbox.Error
	if _, err := x.Execute(t.Context(), sampled(good, nil, []string{unlucky, unlucky}, suites)); !errors.As(err, &failed) {
		t.Errorf("every answer failed: %v; want a *sandbox.Error", err)
	}
	if _, err := x.Execute(t.Context(), sampled(unlucky, nil, []string{good, good}, suites)); !errors.As(err, &failed) {
		t.Errorf("the ground truth failed: %v; want a *sandbox.Error", err)
	}
}

func TestHandler(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	h := &Handler{Executor: openExecutor(t, quick), Source: "execution/1", Now: func() time.Time { return at }}
	in := sampled("def f(x): return x", nil, []string{"def f(x): return x"}, [][]string{{"assert f(1) == 1"}})
	group := in.Posed.Plan.GroupID()
	cause := events.New("run", group, "test", at, in)
	if _, err := events.Encode(cause); err != nil {
		t.Fatal(err)
	}
	out, err := h.Handle(t.Context(), cause)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 1 || out[0].Type != events.TypeCodeExecuted || out[0].ID != events.DeriveID(cause.ID, events.TypeCodeExecuted) || out[0].Group != group {
		t.Fatalf("got %+v", out)
	}
	if _, err := events.Encode(out[0]); err != nil {
		t.Error(err)
	}
	in.Judged = &events.Judged{Judges: "findings", Engine: "test 1", Lines: 1, Answers: make([]events.Judgement, 1)}
	if out, err := h.Handle(t.Context(), cause); err != nil || out[0].Payload.(*events.CodeExecuted).Judged != in.Judged {
		t.Errorf("the judgements of the answers are lost: %v", err)
	}
	if _, err := h.Handle(t.Context(), out[0]); err == nil {
		t.Error("took an event of another type")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Handle(ctx, cause); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
