package export

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
	"codea1/replay/query"
)

// pairGroup is an executed group. Each answer has a letter for each golden test: p for one
// that it passes, n for one that was not run. The code of answer m is c and m.
func pairGroup(verdicts ...string) *query.Lineage {
	g := &query.Lineage{
		Group:    "g",
		Posed:    &events.ProblemPosed{Problem: events.Problem{ID: "p", Question: "What is f?"}},
		Executed: &events.CodeExecuted{ProblemID: "p"},
		Tests:    &events.TestsSampled{},
	}
	for m, row := range verdicts {
		a := events.ExecutedAnswer{Loads: true}
		for _, letter := range row {
			a.Golden = append(a.Golden, events.GoldenVerdict{Verdict: letters[letter]})
		}
		g.Executed.Answers = append(g.Executed.Answers, a)
		g.Tests.Codes = append(g.Tests.Codes, fmt.Sprintf("\nc%d\n", m))
	}
	return g
}

var letters = map[rune]events.Verdict{'p': events.VerdictPass, 'f': events.VerdictFail, 'n': events.VerdictNotRun}

// short is a pair without its group: "chosen > rejected, rates and tests, evidence".
func short(rows []PairRow) (all []string) {
	for _, r := range rows {
		all = append(all, fmt.Sprintf("%s>%s %d>%d %.2f/%d>%.2f/%d %s", r.Chosen, r.Rejected, r.ChosenAnswer, r.RejectedAnswer,
			r.ChosenPass, r.ChosenTests, r.RejectedPass, r.RejectedTests, r.Evidence))
	}
	return all
}

// The pairs were written by hand.
func TestPairs(t *testing.T) {
	t.Parallel()
	golden := pairGroup("ppff", "pppp", "ppnn", "ffff", "pfff", "pppf", "fppp", "ffff")
	golden.Executed.Answers[3] = events.ExecutedAnswer{LoadError: "SyntaxError"}
	golden.Executed.Answers[4] = events.ExecutedAnswer{Failure: "killed"}
	golden.Tests.Codes[6] = "c5 " // equal to the code of answer 5
	golden.Tests.Codes[7] = " \n"
	golden.Executed.Answers[5].Golden[3].Verdict = events.VerdictTimeout
	golden.Executed.Answers[6].Golden[1].Verdict = events.VerdictRaised // a flaky program: 2 of 4
	want := []string{
		"c1>c3 1>3 1.00/4>0.00/4 golden",
		"c5>c3 5>3 0.75/4>0.00/4 golden",
		"c1>c2 1>2 1.00/4>0.50/4 golden",
		"c2>c3 2>3 0.50/4>0.00/4 golden",
		"c0>c3 0>3 0.50/4>0.00/4 golden",
		"c1>c5 1>6 1.00/4>0.50/4 golden",
		"c5>c3 6>3 0.50/4>0.00/4 golden",
		"c1>c0 1>0 1.00/4>0.50/4 golden",
		"c5>c0 5>0 0.75/4>0.50/4 golden",
		"c1>c5 1>5 1.00/4>0.75/4 golden",
		"c5>c2 5>2 0.75/4>0.50/4 golden",
	}
	if diff := cmp.Diff(want, short(pairRows(golden))); diff != "" {
		t.Errorf("golden tests (-want +got):\n%s", diff)
	}
	golden.Rewarded = &events.GroupRewarded{Code: make([]events.AnswerReward, 8)}
	for _, m := range []int{0, 1, 2, 5} {
		golden.Rewarded.Code[m].Masked = true
	}
	if diff := cmp.Diff([]string{"c5>c3 6>3 0.50/4>0.00/4 golden"}, short(pairRows(golden))); diff != "" {
		t.Errorf("masked answers (-want +got):\n%s", diff)
	}
	golden.Tests = nil
	if rows := pairRows(golden); rows != nil {
		t.Errorf("without the texts of the answers: %+v", rows)
	}
}

// Without golden tests, all answers are compared by the tests of all suites, with their true
// values.
func TestPairsByCross(t *testing.T) {
	t.Parallel()
	g := pairGroup("", "", "")
	g.Executed = crossedGroup(1, "pff", "ppf", "ppn")
	for m := range g.Executed.Answers {
		g.Executed.Answers[m].Loads = true
	}
	// The stated value of f(0) is one more test, which is wrong and does not count.
	for i, test := range g.Executed.CrossTests() {
		if test.Value == "2" {
			g.Executed.Cross.Set(2, i, events.VerdictPass)
		}
	}
	want := []string{
		"c0>c2 0>2 1.00/3>0.00/3 cross",
		"c1>c2 1>2 0.67/3>0.00/3 cross",
		"c0>c1 0>1 1.00/3>0.67/3 cross",
	}
	if diff := cmp.Diff(want, short(pairRows(g))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	g.Executed.Cross.Tests = 80 // of a stranger
	if rows := pairRows(g); len(rows) != 0 {
		t.Errorf("with bits of other tests: %+v", rows)
	}
}

// Without both, an answer is compared by the historical tests and its own suites. One
// without a test takes no part.
func TestPairsBySuites(t *testing.T) {
	t.Parallel()
	g := pairGroup("", "", "", "")
	suite := func(row string) (s events.ExecutedSuite) {
		for _, letter := range row {
			s.Tests = append(s.Tests, events.ExecutedTest{Status: events.StatusKept, Call: "f()", Expected: "1", Verdict: letters[letter]})
		}
		s.Tests = append(s.Tests, events.ExecutedTest{Status: events.StatusRaised, Verdict: events.VerdictNotRun})
		return s
	}
	lost := suite("fff")
	lost.Failure = "killed"
	a := g.Executed.Answers
	a[0].Suites, a[0].Historical = []events.ExecutedSuite{suite("pf"), suite("")}, []events.Verdict{events.VerdictPass}
	a[1].Suites = []events.ExecutedSuite{suite("pp"), lost}
	a[2].Suites = []events.ExecutedSuite{suite("f")}
	a[3].Suites = []events.ExecutedSuite{suite("")}
	want := []string{
		"c1>c2 1>2 1.00/2>0.00/1 suites",
		"c0>c2 0>2 0.67/3>0.00/1 suites",
		"c1>c0 1>0 1.00/2>0.67/3 suites",
	}
	if diff := cmp.Diff(want, short(pairRows(g))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A large group has its largest differences, of as many answers as possible.
func TestPairsAreBounded(t *testing.T) {
	t.Parallel()
	var verdicts []string
	for m := range 40 {
		verdicts = append(verdicts, []string{"pp", "ff"}[m%2])
	}
	verdicts[39] = "pf"
	rows := pairRows(pairGroup(verdicts...))
	if len(rows) != maxPairs {
		t.Fatalf("%d pairs", len(rows))
	}
	seen := map[int]bool{}
	for _, r := range rows {
		seen[r.ChosenAnswer], seen[r.RejectedAnswer] = true, true
		if r.ChosenPass-r.RejectedPass != 1 {
			t.Errorf("%+v", r)
		}
	}
	if len(seen) != 39 {
		t.Errorf("%d of 39 answers are in pairs", len(seen))
	}
}

// The table has the training groups of the log only. A log without a pair is an error.
func TestPairsOfALog(t *testing.T) {
	t.Parallel()
	_, l := eventlogtest.Run(t, replaytest.Tell(t))
	t.Run("formats", func(t *testing.T) { sameInBoth[PairRow](t, l, TablePairs) })
	var rows []PairRow
	x := Exporter{Log: l, Format: FormatJSONL, Out: io.Discard}
	if err := x.eachGroup(t.Context(), func(_ string, g *query.Lineage) error {
		if g.Posed.Plan.Purpose == events.PurposeTrain {
			rows = append(rows, pairRows(g)...)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if first := rows[0]; len(rows) != replaytest.Steps*replaytest.Groups || first.Chosen != "def f(x):\n    return x" || first.Purpose != "train" || first.Step != 1 {
		t.Errorf("%d rows, the first %+v", len(rows), rows[0])
	}
	plans := replaytest.NewStory(t)
	plans.Start()
	plans.Group(plans.Plan(events.PurposeEval, 0, 0))
	_, l = eventlogtest.Run(t, plans.Messages)
	x.Log = l
	if err := x.Export(t.Context(), TablePairs); !errors.Is(err, ErrNoPairs) {
		t.Errorf("a log with an evaluation only: %v", err)
	}
}
