package evaluation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

const (
	pass   = events.VerdictPass
	fail   = events.VerdictFail
	notRun = events.VerdictNotRun
)

func golden(verdicts ...events.Verdict) (out []events.GoldenVerdict) {
	for _, v := range verdicts {
		out = append(out, events.GoldenVerdict{Verdict: v})
	}
	return out
}

func kept(v events.Verdict, wrong bool) events.ExecutedTest {
	return events.ExecutedTest{Status: events.StatusKept, Call: "f()", Expected: "1", Verdict: v, Wrong: wrong}
}

func suite(tests ...events.ExecutedTest) events.ExecutedSuite {
	return events.ExecutedSuite{Chars: 10, Tests: tests}
}

func group(given bool, suites int, answers ...events.ExecutedAnswer) *events.CodeExecuted {
	return &events.CodeExecuted{
		Plan: events.Plan{
			Purpose: events.PurposeEval, Tag: "before", Groups: 1,
			Answers: len(answers), Suites: suites, Tests: 3, Temperature: 1,
		},
		ProblemID: "p", CodeVersion: 4, TestVersion: 5, Given: given, Answers: answers,
	}
}

func TestScoreJudgesSampledAnswersByTheGoldenTests(t *testing.T) {
	g := group(false, 0,
		events.ExecutedAnswer{Loads: true, Golden: golden(pass, pass)},
		events.ExecutedAnswer{Loads: true, Golden: golden(pass, fail)},
		events.ExecutedAnswer{Failure: "the sandbox died"},
		events.ExecutedAnswer{LoadError: "SyntaxError"},
		events.ExecutedAnswer{Loads: true, Golden: golden(pass, notRun)},
	)
	got, err := Score(g, trivial)
	if err != nil {
		t.Fatal(err)
	}
	want := &events.EvalScored{
		Plan: g.Plan, ProblemID: "p", CodeVersion: 4, TestVersion: 5,
		Correct: []bool{true, false, false, false}, // the lost answer is not among them
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestScoreJudgesSuitesOnGivenAnswers(t *testing.T) {
	unparsable := events.ExecutedTest{Status: events.StatusUnparsable, Verdict: notRun}
	g := group(true, 4,
		events.ExecutedAnswer{Loads: true, Golden: golden(pass, fail), Suites: []events.ExecutedSuite{
			suite(kept(pass, false), kept(fail, false), unparsable), // finds it
			suite(kept(fail, true), kept(pass, false)),              // its failing test is wrong as stated: does not find it
			suite(kept(events.VerdictRaised, false)),                // finds it
			{Failure: "the sandbox died"},                           // counts nowhere
		}},
		events.ExecutedAnswer{Loads: true, Golden: golden(pass, pass), Suites: []events.ExecutedSuite{
			suite(kept(fail, false)), suite(), suite(), suite(), // no golden test fails: not defective
		}},
		events.ExecutedAnswer{Golden: golden(notRun, notRun), Suites: []events.ExecutedSuite{
			suite(kept(notRun, false)), suite(), suite(), suite(), // does not load: no defect to find
		}},
		events.ExecutedAnswer{Failure: "the sandbox died"},
	)
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	got, err := Score(g, trivial)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	want := &events.EvalScored{
		Plan: g.Plan, ProblemID: "p", CodeVersion: 4, TestVersion: 5,
		Suites:    11, // 3 + 4 + 4
		Wanted:    33, // 11 suites of 3
		Stated:    8,  // 3 + 2 + 1, then 1, then 1
		Right:     6,  // 2 + 1 + 1, then 1, then 1
		Defective: 3, Found: 2,
		Inputs: &events.InputCounts{Kept: 7 /* and one test is unparsable */, Reached: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestScoreErrors(t *testing.T) {
	if _, err := Score(group(false, 0, events.ExecutedAnswer{Loads: true}), trivial); !errors.Is(err, ErrNoGolden) {
		t.Errorf("have %v, want %v", err, ErrNoGolden)
	}
	if _, err := Score(group(false, 0, events.ExecutedAnswer{Failure: "x"}), trivial); !errors.Is(err, ErrAllMasked) {
		t.Errorf("have %v, want %v", err, ErrAllMasked)
	}
}
