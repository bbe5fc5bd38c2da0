package scoring

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"codea1/consumers/evaluation"
	"codea1/consumers/execution/evalplus"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
	"codea1/events/files"
	"codea1/events/rundir"
	"codea1/events/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var near = cmpopts.EquateApprox(0, 1e-12)

// scorer prints the JSON objects of figures into one text, and lost ones into another.
func scorer(t *testing.T) (s *Scoring, figures, lost *bytes.Buffer) {
	t.Helper()
	flags := new(sandbox.Flags)
	if err := settings.Defaults(flags); err != nil {
		t.Fatal(err)
	}
	flags.CallTimeout, flags.JobTimeout, flags.Sandboxes = time.Minute, 2*time.Minute, 1
	figures, lost = new(bytes.Buffer), new(bytes.Buffer)
	return &Scoring{Sandbox: flags, JSON: true, Out: figures, Progress: lost, Logger: slog.New(slog.DiscardHandler)}, figures, lost
}

// decoded reads JSON objects.
func decoded[T any](t *testing.T, text *bytes.Buffer) (all []T) {
	t.Helper()
	for d := json.NewDecoder(text); ; {
		var one T
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

// answered adds the executed group of a problem to an evaluation. A word has the verdicts of
// an answer on the golden tests: p for a passed one; load for an answer that does not load,
// masked for one that the sandbox failed on.
func answered(e *Evaluation, id, source string, base int, words string) {
	problem := events.Problem{ID: id, Question: "q", EntryPoint: "f", Solution: "def f(): pass", Golden: make([]string, 2)}
	sampled := &events.CodeSampled{Posed: events.ProblemPosed{Plan: events.Plan{Purpose: events.PurposeEval}, Problem: problem}}
	executed := &events.CodeExecuted{ProblemID: id}
	for _, word := range strings.Fields(words) {
		sampled.Answers = append(sampled.Answers, events.Completion{Text: "```python\n" + word + "\n```"})
		answer := events.ExecutedAnswer{Loads: word != "load"}
		if word == "masked" {
			answer.Failure = "the sandbox died"
		}
		for _, letter := range word[:2] {
			verdict := events.GoldenVerdict{Verdict: events.VerdictFail, Detail: word}
			if letter == 'p' {
				verdict.Verdict = events.VerdictPass
			}
			answer.Golden = append(answer.Golden, verdict)
		}
		executed.Answers = append(executed.Answers, answer)
	}
	e.Rows[id] = &evalplus.Problem{ID: id, Source: source, BaseTests: base}
	for _, payload := range []events.Payload{sampled, executed} {
		e.Gathered.Add(events.New("r", "g-"+id, "test", time.Time{}, payload))
	}
}

func newEvaluation(t *testing.T) *Evaluation {
	return &Evaluation{Dir: t.TempDir(), Rows: map[string]*evalplus.Problem{}, Gathered: new(evaluation.Gathered)}
}

// TestAnswers has figures that were computed by hand.
func TestAnswers(t *testing.T) {
	e := newEvaluation(t)
	// One base test and one plus test. Of 10 answers, 4 pass the first and 2 both.
	answered(e, "a", "plus", 1, "pp pp px px xx xy xz xu xv load")
	// 9 count, because the sandbox failed on one: 3 and 3. Most fail in the same way.
	answered(e, "b", "plus", 1, "pp pp pp xx xx xx xx xx xx masked")
	answered(e, "c", "own", 0, "pp px xx")
	e.Gathered.Add(events.New("r", "g-d", "test", time.Time{}, &events.GroupDropped{Purpose: events.PurposeEval, Reason: events.DropTooLarge, Detail: "long"}))
	s, figures, lost := scorer(t)
	if err := s.Answers(t.Context(), e, 0); err != nil {
		t.Fatal(err)
	}
	want := []evaluation.Summary{
		{Benchmark: "own", Suite: "all", Problems: 1, Answers: 3, Avg: 1.0 / 3, PassAt: []evaluation.PassValue{{K: 1, Value: 1.0 / 3}, {K: 3, Value: 1}}, Majority: 1},
		{
			// Without a correct answer among 8 of 10 are C(6,8) = 0 of the choices, and among 8
			// of 9 none. The two answers that pass both tests are the earliest largest set of a: the
			// others fail in ways of their own, or are two as well.
			Benchmark: "plus", Suite: "base", Problems: 2, Answers: 9, Avg: (0.4 + 3.0/9) / 2,
			PassAt: []evaluation.PassValue{{K: 1, Value: (0.4 + 3.0/9) / 2}, {K: 8, Value: 1}, {K: 9, Value: 1}}, Majority: 0.5,
		},
		{
			// C(8,8) = 1 of the C(10,8) = 45 choices of 8 answers to a have no correct one.
			Benchmark: "plus", Suite: "base+plus", Problems: 2, Answers: 9, Avg: (0.2 + 3.0/9) / 2,
			PassAt: []evaluation.PassValue{{K: 1, Value: (0.2 + 3.0/9) / 2}, {K: 8, Value: (44.0/45 + 1) / 2}, {K: 9, Value: 1}}, Majority: 0.5,
		},
	}
	got := decoded[evaluation.Summary](t, figures)
	if d := cmp.Diff(want, got, near, cmpopts.IgnoreFields(evaluation.Summary{}, "Low", "High")); d != "" {
		t.Error(d)
	}
	if text := lost.String(); text != "1 samples do not count: the sandbox failed on them\n1 problems do not count; first: too_large: long\n" {
		t.Errorf("%q", text)
	}
	samples, err := os.ReadFile(rundir.Samples(e.Dir))
	if err != nil || strings.Count(string(samples), "\n") != 23 {
		t.Errorf("%v; the samples are\n%s", err, samples)
	}
	delete(e.Rows, "a")
	if err := s.Answers(t.Context(), e, 0); err == nil || !strings.Contains(err.Error(), "has no problem a, which the log has") {
		t.Error(err)
	}
}

// TestTests has figures that were computed by hand, also when its results are read again.
// The mutants are those of TestJudge: of 23, 6 survive.
func TestTests(t *testing.T) {
	e := newEvaluation(t)
	for id, calls := range map[string]string{"a": "f(2)=3 f(-1)=0", "b": "f(2)=3 f(1)=1"} {
		answered(e, id, "own", 0, "pp")
		suite := events.ExecutedSuite{}
		for _, test := range strings.Fields(calls) {
			call, stated, _ := strings.Cut(test, "=")
			suite.Tests = append(suite.Tests, events.ExecutedTest{Call: call, Stated: stated, Status: events.StatusKept, Wrong: stated == "1"})
		}
		for _, group := range e.Gathered.Groups() {
			if group.Problem.ID == id {
				group.Problem.Solution = "def f(x):\n    return x + 1 if x > 0 else 0\n"
				group.Executed.Answers[0].Suites = []events.ExecutedSuite{suite}
			}
		}
	}
	// 3 of 4 tests pass. The suite of a counts in mut@2 with 17 of 23 mutants. The two branches
	// are those of the condition; both lines run for each suite.
	want := evaluation.TestSummary{
		Benchmark: "own", K: 2, Suites: 2, Pass: 75, Perfect: 1, Mut: 1700.0 / 23, Low: 1700.0 / 23, High: 1700.0 / 23, Mul: 1275.0 / 23,
		Branch: 75, Measured: 2, Line: 100, Lined: 2,
	}
	for range 2 {
		s, figures, _ := scorer(t)
		err := s.Tests(t.Context(), e, 1, 2)
		if errors.Is(err, sandbox.ErrNotIsolated) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]evaluation.TestSummary{want}, decoded[evaluation.TestSummary](t, figures), near); d != "" {
			t.Error(d)
		}
	}
	lines := 0
	file, err := files.Continue(rundir.Tests(e.Dir), func([]byte) error { lines++; return nil })
	if err != nil || lines != 2 {
		t.Errorf("%d lines, %v", lines, err)
	}
	file.Close()
}
