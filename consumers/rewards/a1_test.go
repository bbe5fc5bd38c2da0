package rewards

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codea1/events"
)

const (
	pass    = events.VerdictPass
	fail    = events.VerdictFail
	raised  = events.VerdictRaised
	timeout = events.VerdictTimeout
	notRun  = events.VerdictNotRun
)

var approx = cmpopts.EquateApprox(0, 1e-9)

// near8 is for values that were computed to eight digits.
var near8 = cmpopts.EquateApprox(0, 2e-8)

func kept(v events.Verdict) events.ExecutedTest {
	return events.ExecutedTest{Status: events.StatusKept, Call: "f()", Expected: "1", Verdict: v}
}

func wrong(v events.Verdict) events.ExecutedTest {
	t := kept(v)
	t.Wrong = true
	return t
}

func discarded(s events.TestStatus) events.ExecutedTest {
	return events.ExecutedTest{Status: s, Verdict: notRun}
}

// TestA1Suite holds worked examples; each comment is the arithmetic by hand.
func TestA1Suite(t *testing.T) {
	for _, tc := range []struct {
		name    string
		k       int
		alpha   float64
		answer  events.ExecutedAnswer
		suite   events.ExecutedSuite
		want    events.SuiteReward
		because string
	}{
		{
			name: "only new tests", k: 8, alpha: 0.5,
			answer: events.ExecutedAnswer{Loads: true},
			suite: events.ExecutedSuite{Chars: 400, Tests: []events.ExecutedTest{
				kept(pass), kept(fail), kept(raised), kept(pass), wrong(timeout), discarded(events.StatusUnparsable),
			}},
			// valid 5, invalid 1 unparsable + 1 wrong = 2
			// R_val = min(5/8, 1 - 2/8) = 0.625
			// fail_new = 3/8 = 0.375 = R_adv; pass_new = 2/5 = 0.4
			// R_test = 0.5*0.625 + 0.5*0.375 = 0.5
			want: events.SuiteReward{Reward: 0.5, RVal: 0.625, RAdv: 0.375, Pass: 0.4, PassNew: 0.4, FailNew: 0.375, Valid: 5, Invalid: 2},
		},
		{
			name: "new and historical tests", k: 8, alpha: 0.5,
			answer: events.ExecutedAnswer{Loads: true, Historical: []events.Verdict{pass, pass, fail, pass, timeout}},
			suite: events.ExecutedSuite{Chars: 400, Tests: []events.ExecutedTest{
				kept(pass), kept(fail), kept(pass), kept(pass), kept(fail), kept(pass), kept(fail), kept(fail),
			}},
			// R_val = min(8/8, 1 - 0) = 1
			// fail_new = 4/8 = 0.5, fail_hist = 2/5 = 0.4: R_adv = (0.5 - 0.4 + 1)/2 = 0.55
			// pass_new = 4/8 = 0.5, pass_hist = 3/5 = 0.6: pass = 0.55
			// R_test = 0.5*1 + 0.5*0.55 = 0.775
			want: events.SuiteReward{
				Reward: 0.775, RVal: 1, RAdv: 0.55, Pass: 0.55,
				PassNew: 0.5, FailNew: 0.5, PassHist: 0.6, FailHist: 0.4, Valid: 8,
			},
		},
		{
			name: "only historical tests", k: 4, alpha: 0.5,
			answer: events.ExecutedAnswer{Loads: true, Historical: []events.Verdict{pass, fail, fail, fail}},
			suite:  events.ExecutedSuite{Chars: 40, Tests: []events.ExecutedTest{discarded(events.StatusRaised)}},
			// valid 0: R_val = min(0, 1 - 1/4) = 0; R_adv = 0 although fail_hist = 0.75; pass = 1/4
			want: events.SuiteReward{Pass: 0.25, PassHist: 0.25, FailHist: 0.75, Invalid: 1},
		},
		{
			name: "neither", k: 4, alpha: 0.5,
			answer: events.ExecutedAnswer{Loads: true},
			suite:  events.ExecutedSuite{},
			want:   events.SuiteReward{},
		},
		{
			name: "more invalid tests than wanted", k: 4, alpha: 1,
			answer: events.ExecutedAnswer{Loads: true},
			suite: events.ExecutedSuite{Chars: 10, Tests: []events.ExecutedTest{
				kept(pass), discarded(events.StatusUnparsable), discarded(events.StatusUnparsable),
				discarded(events.StatusDuplicate), discarded(events.StatusDuplicate), discarded(events.StatusRaised),
			}},
			// R_val = min(1/4, 1 - 5/4) = -0.25, clamped to 0; pass_new = 1/1
			want: events.SuiteReward{Pass: 1, PassNew: 1, Valid: 1, Invalid: 5},
		},
		{
			name: "only the first K failures pay", k: 2, alpha: 0.25,
			answer: events.ExecutedAnswer{Loads: true},
			suite: events.ExecutedSuite{Chars: 10, Tests: []events.ExecutedTest{
				discarded(events.StatusUnparsable), kept(pass), kept(fail), kept(fail), kept(fail),
			}},
			// the discarded test is not among the first 2 kept ones
			// valid 4, invalid 1: R_val = min(4/2, 1 - 1/2) = 0.5; fail_new = 1/2; pass_new = 1/4
			// R_test = 0.25*0.5 + 0.75*0.5 = 0.5
			want: events.SuiteReward{Reward: 0.5, RVal: 0.5, RAdv: 0.5, Pass: 0.25, PassNew: 0.25, FailNew: 0.5, Valid: 4, Invalid: 1},
		},
		{
			name: "unprintable characters", k: 1, alpha: 0.5,
			answer: events.ExecutedAnswer{Loads: true},
			suite:  events.ExecutedSuite{Chars: 80, Unprintable: 12, Tests: []events.ExecutedTest{kept(pass)}},
			// R_val = 1, R_adv = 0: 0.5 - 12/80 = 0.35
			want: events.SuiteReward{Reward: 0.35, RVal: 1, Penalty: 0.15, Pass: 1, PassNew: 1, Valid: 1},
		},
		{
			name: "the answer does not load", k: 2, alpha: 0.5,
			answer: events.ExecutedAnswer{Historical: []events.Verdict{notRun}},
			suite:  events.ExecutedSuite{Chars: 50, Unprintable: 5, Tests: []events.ExecutedTest{kept(notRun), kept(notRun)}},
			// 0 - 5/50
			want: events.SuiteReward{Reward: -0.1, RVal: 1, Penalty: 0.1, Valid: 2},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := A1(tc.alpha).Suite(&events.Plan{Tests: tc.k}, &tc.answer, &tc.suite)
			if diff := cmp.Diff(tc.want, got, approx); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestA1AnswerIsTheMeanOverItsSuites(t *testing.T) {
	answer := Answer{ExecutedAnswer: &events.ExecutedAnswer{Loads: true}}
	for _, pass := range []float64{0.25, 0.75, 0.8} {
		answer.Suites = append(answer.Suites, Suite{Reward: &events.SuiteReward{Pass: pass}})
	}
	if got := A1(0).Answer(&answer); math.Abs(got-0.6) > 1e-12 { // (0.25 + 0.75 + 0.8)/3 = 0.6
		t.Errorf("have %v, want 0.6", got)
	}
	answer.Loads = false
	if got := A1(0).Answer(&answer); got != 0 {
		t.Errorf("an answer that does not load earns %v", got)
	}
}

func TestAdvantages(t *testing.T) {
	for _, tc := range []struct {
		name    string
		rewards []float64
		want    []float64
	}{
		{"no rewards", nil, []float64{}},
		{"a group of one", []float64{0.3}, []float64{0.3}},
		{"all equal", []float64{0.5, 0.5, 0.5}, []float64{0, 0, 0}},
		// mean 0.5; sample variance (0.25 + 0.25)/1 = 0.5, std 0.70710678
		// 0.5/(0.70710678 + 1e-6) = 0.70710578
		{"two", []float64{0, 1}, []float64{-0.70710578, 0.70710578}},
		// mean 3; squares 4+1+0+1+4 = 10; variance 10/4 = 2.5, std 1.58113883
		// 2/1.58113983 = 1.26491026, 1/1.58113983 = 0.63245513
		{"five", []float64{1, 2, 3, 4, 5}, []float64{-1.26491026, -0.63245513, 0, 0.63245513, 1.26491026}},
	} {
		if diff := cmp.Diff(tc.want, Advantages(tc.rewards), cmpopts.EquateApprox(0, 1e-8)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestTopVar(t *testing.T) {
	row := func(rewards ...float64) (out []events.SuiteReward) {
		for _, r := range rewards {
			out = append(out, events.SuiteReward{Reward: r})
		}
		return out
	}
	masked := events.SuiteReward{Reward: 100, Masked: true}
	for _, tc := range []struct {
		name   string
		suites [][]events.SuiteReward
		want   int
	}{
		{"no suites", [][]events.SuiteReward{{}, {}}, -1},
		{"all masked", [][]events.SuiteReward{{masked}, {masked, masked}}, -1},
		// population std: 0.1 and 0.25
		{"the larger deviation", [][]events.SuiteReward{row(0.4, 0.6), row(0.25, 0.75)}, 1},
		{"the first on ties", [][]events.SuiteReward{row(0.5, 0.5), row(0.2, 0.4), row(0.6, 0.8)}, 1},
		{"rounding is no difference", [][]events.SuiteReward{row(0.1, 0.2, 0.3), row(0.3, 0.1, 0.2), row(0.2, 0.3, 0.1)}, 0},
		{"a masked suite does not count", [][]events.SuiteReward{append(row(0.5, 0.5), masked), row(0.4, 0.5)}, 1},
		// population std of {0,1} is 0.5, of {0,0,1} sqrt(2/9) = 0.4714; the
		// sample deviations would be 0.7071 and 0.5774
		{"suites of different number", [][]events.SuiteReward{row(0, 0, 1), row(0, 1)}, 1},
		{"one suite has deviation 0", [][]events.SuiteReward{{masked, masked}, row(1)}, 1},
	} {
		if got := TopVar(tc.suites); got != tc.want {
			t.Errorf("%s: have %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	if _, err := New("a2", 0.5); !errors.Is(err, ErrUnknownRecipe) {
		t.Errorf("have %v, want %v", err, ErrUnknownRecipe)
	}
	for _, alpha := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := New(NameA1, alpha); !errors.Is(err, ErrAlpha) {
			t.Errorf("alpha %v: have %v, want %v", alpha, err, ErrAlpha)
		}
	}
	for _, name := range Names() {
		r, err := New(name, 0.75)
		if err != nil || r.Name() != name {
			t.Errorf("recipe %s: have %v, %v", name, r, err)
		}
	}
}

func TestScoreRefusesSuitesOfNoTests(t *testing.T) {
	g := &events.CodeExecuted{
		ProblemID: "p", Plan: events.Plan{Answers: 1, Suites: 1},
		Answers: []events.ExecutedAnswer{{Loads: true, Suites: make([]events.ExecutedSuite, 1)}},
	}
	if _, err := Score(A1(DefaultAlpha), g); !errors.Is(err, ErrNoTestsWanted) {
		t.Errorf("have %v, want %v", err, ErrNoTestsWanted)
	}
}
