package rewards

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

// threeAnswers is a group of three answers: the first passes a new test, fails
// one, and passes a historical one; the second fails everything; the third does
// not load.
func threeAnswers() *events.CodeExecuted {
	suite := func(tests ...events.ExecutedTest) events.ExecutedSuite {
		return events.ExecutedSuite{Chars: 10, Tests: tests}
	}
	g := &events.CodeExecuted{
		ProblemID:  "p",
		Historical: []events.HistoricalTest{{Call: "h()", Expected: "1", Count: 2}},
		Answers: []events.ExecutedAnswer{
			{Loads: true, Historical: []events.Verdict{pass}, Golden: []events.GoldenVerdict{{Verdict: pass}}, Suites: []events.ExecutedSuite{suite(kept(pass)), suite(kept(fail))}},
			{Loads: true, Historical: []events.Verdict{fail}, Golden: []events.GoldenVerdict{{Verdict: fail}}, Suites: []events.ExecutedSuite{suite(kept(fail)), suite(kept(fail))}},
			{Historical: []events.Verdict{notRun}, Suites: []events.ExecutedSuite{suite(kept(notRun)), suite(kept(notRun))}},
		},
	}
	g.Plan = planFor(g, 1)
	return g
}

func mustScore(t *testing.T, r Recipe, g *events.CodeExecuted) *events.GroupRewarded {
	t.Helper()
	out, err := Score(r, g)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Validate(); err != nil {
		t.Fatal(err)
	}
	return out
}

func advantagesOf(g *events.GroupRewarded) (code []float64, test [][]float64) {
	for m := range g.Code {
		code = append(code, g.Code[m].Advantage)
		row := []float64{}
		for n := range g.Test[m] {
			row = append(row, g.Test[m][n].Advantage)
		}
		test = append(test, row)
	}
	return code, test
}

// Self-Play has the rewards of A1, and compares all suites of the group.
func TestSelfPlay(t *testing.T) {
	g := threeAnswers()
	a1, self := mustScore(t, A1(0.5), g), mustScore(t, SelfPlay(0.5), g)
	if self.Recipe != NameSelfPlay || self.Alpha != 0.5 {
		t.Errorf("recorded as %s, alpha %v", self.Recipe, self.Alpha)
	}
	for m := range g.Answers {
		if self.Code[m] != a1.Code[m] {
			t.Errorf("answer %d: %+v, A1 has %+v", m, self.Code[m], a1.Code[m])
		}
		for n := range self.Test[m] {
			x, y := self.Test[m][n], a1.Test[m][n]
			x.Advantage, y.Advantage = 0, 0
			if x != y {
				t.Errorf("answer %d, suite %d: %+v, A1 has %+v", m, n, x, y)
			}
		}
	}
	// R_test with R_val 1: fail_hist is 0 of answer 0 and 1 of answer 1, so R_adv
	// is 0.5, 1 and 0.5, 0.5; R_test 0.75, 1, 0.75, 0.75. Mean 0.8125, squares
	// 3*0.0625^2 + 0.1875^2 = 0.046875, std sqrt(0.046875/3) = 0.125.
	_, got := advantagesOf(self)
	want := [][]float64{{-0.0625 / 0.125001, 0.1875 / 0.125001}, {-0.0625 / 0.125001, -0.0625 / 0.125001}, {0, 0}}
	if diff := cmp.Diff(want, got, approx); diff != "" {
		t.Error(diff)
	}
}

func TestRules(t *testing.T) {
	g := threeAnswers()
	formula := func(change func(*Formula)) Formula {
		f := PaperFormula()
		change(&f)
		return f
	}
	t.Run("mean", func(t *testing.T) {
		got := mustScore(t, formula(func(f *Formula) { f.GroupRules.Advantage = AdvantageMean }), g)
		// R_code: (1 + 0.5)/2 = 0.75 (pass 0.5*1+0.5*1 and 0.5*1+0.5*0), 0, 0: mean 0.25.
		code, test := advantagesOf(got)
		if diff := cmp.Diff([]float64{0.5, -0.25, -0.25}, code, approx); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([][]float64{{-0.125, 0.125}, {0, 0}, {0, 0}}, test, approx); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("difficulty", func(t *testing.T) {
		plain, _ := advantagesOf(mustScore(t, PaperFormula(), g))
		for _, tt := range []struct {
			bands []Band
			want  float64
		}{
			{[]Band{{0.2, 5}, {0.25, 2}, {1, 0}}, 2}, // the mean of R_code is 0.25
			{[]Band{{0.2, 5}}, 1},
		} {
			code, _ := advantagesOf(mustScore(t, formula(func(f *Formula) { f.GroupRules.Bands = tt.bands }), g))
			for m := range code {
				if code[m] != tt.want*plain[m] {
					t.Errorf("%v: answer %d has %v, want %v times %v", tt.bands, m, code[m], tt.want, plain[m])
				}
			}
		}
	})
	t.Run("choose", func(t *testing.T) {
		for choice, want := range map[Choice]int{ChooseMaxStd: 0, ChooseMaxMean: 0, ChooseNone: -1} {
			if got := mustScore(t, formula(func(f *Formula) { f.GroupRules.Choose = choice }), g).TopVar; got != want {
				t.Errorf("%s: answer %d, want %d", choice, got, want)
			}
		}
		row := func(rewards ...float64) (out []events.SuiteReward) {
			for _, r := range rewards {
				out = append(out, events.SuiteReward{Reward: r})
			}
			return out
		}
		if got := TopMean([][]events.SuiteReward{row(0, 1), row(0.6, 0.7), row(0.7, 0.6), {}}); got != 1 {
			t.Errorf("the first of the largest means is answer %d, want 1", got)
		}
	})
	t.Run("book", func(t *testing.T) {
		down, up := events.BookDelta{Call: "h()", Expected: "1", Change: -1}, events.BookDelta{Call: "f()", Expected: "1", Change: 3}
		for _, tt := range []struct {
			remember, forget bool
			want             []events.BookDelta
		}{
			{true, true, []events.BookDelta{down, up}}, {true, false, []events.BookDelta{up}},
			{false, true, []events.BookDelta{down}}, {false, false, nil},
		} {
			got := mustScore(t, formula(func(f *Formula) { f.GroupRules.Remember, f.GroupRules.Forget = tt.remember, tt.forget }), g)
			if diff := cmp.Diff(tt.want, got.Deltas); diff != "" {
				t.Errorf("remember %v, forget %v: %s", tt.remember, tt.forget, diff)
			}
		}
	})
	t.Run("terms", func(t *testing.T) {
		f := formula(func(f *Formula) {
			f.Validity, f.Adversarial, f.Wanted, f.AgainstHistorical, f.HistoricalShare, f.GoldenShare = 0.5, 2, 2, false, 0.25, 0.5
		})
		got := mustScore(t, f, g)
		// K = 2: R_val = 1/2, fail_new = 1/2 in suite 1: 0.5*0.5 + 2*0.5 = 1.25.
		if s := got.Test[0][1]; s.RVal != 0.5 || s.RAdv != 0.5 || s.Reward != 1.25 {
			t.Errorf("suite 1: %+v", s)
		}
		// pass: 0.25*1 + 0.75*1 = 1 and 0.25*1 + 0 = 0.25, mean 0.625; golden 1: 0.8125.
		if r := got.Code[0].Reward; r != 0.8125 {
			t.Errorf("R_code %v, want 0.8125", r)
		}
		if !f.Rules().Golden || PaperFormula().Rules().Golden || !Golden().Rules().Golden {
			t.Error("golden tests are needed only by recipes that reward them")
		}
	})
}
