package rewards

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"codea1/events"
)

func drawVerdict(t *rapid.T, loads bool) events.Verdict {
	if !loads {
		return notRun
	}
	return rapid.SampledFrom([]events.Verdict{pass, pass, fail, raised, timeout, notRun}).Draw(t, "verdict")
}

func drawSuite(t *rapid.T, loads bool) events.ExecutedSuite {
	s := events.ExecutedSuite{Chars: rapid.IntRange(0, 50).Draw(t, "chars")}
	s.Unprintable = rapid.IntRange(0, s.Chars).Draw(t, "unprintable")
	if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
		s.Failure = "the sandbox died"
	}
	for range rapid.IntRange(0, 6).Draw(t, "tests") {
		test := discarded(rapid.SampledFrom([]events.TestStatus{
			events.StatusKept, events.StatusKept, events.StatusKept,
			events.StatusUnparsable, events.StatusRaised, events.StatusDuplicate,
		}).Draw(t, "status"))
		if test.Status == events.StatusKept {
			test = kept(drawVerdict(t, loads))
			test.Call = fmt.Sprintf("f(%d)", rapid.IntRange(0, 3).Draw(t, "call"))
			test.Stated = test.Expected
			if test.Wrong = rapid.Bool().Draw(t, "wrong"); test.Wrong {
				test.Stated = "2"
			}
		}
		s.Tests = append(s.Tests, test)
	}
	return s
}

// drawRecipe draws one of all recipes.
func drawRecipe(t *rapid.T) Recipe {
	r, err := New(rapid.SampledFrom(Names()).Draw(t, "recipe"), rapid.Float64Range(0, 1).Draw(t, "alpha"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// crossed adds a field that some recipes need: the verdicts of all suites on all
// answers. They follow from the test and from the name of the answer, which is in
// its LoadError.
func crossed(g *events.CodeExecuted) {
	tests := g.CrossTests()
	g.Plan.Cross, g.Cross = true, events.NewCross(len(tests), len(g.Answers))
	for m := range g.Answers {
		for i, test := range tests {
			if a := &g.Answers[m]; counts(a) {
				hash := fnv.New32()
				fmt.Fprint(hash, a.LoadError, test)
				g.Cross.Set(m, i, []events.Verdict{pass, pass, fail, raised, notRun}[hash.Sum32()%5])
			}
		}
	}
}

// probed adds fields that some recipes need: the probes of each kind that each test
// hits, which follow from the test.
func probed(g *events.CodeExecuted) {
	tests := g.ProbedTests()
	g.Plan.Probes, g.Probes = events.JoinProbes(probeKinds...), nil
	for _, kind := range probeKinds {
		p := events.NewProbes(kind, "test-1", strings.Repeat("0", 64), 11, len(tests))
		if kind == events.ProbeBranches {
			p.Difficulty = 0.25
		}
		for i, test := range tests {
			for probe := range p.Total {
				hash := fnv.New32()
				fmt.Fprint(hash, kind, probe, test)
				if hash.Sum32()%4 == 0 {
					p.Hit(i, probe)
				}
			}
		}
		g.Probes = append(g.Probes, p)
	}
}

// judged adds the field that some recipes need: judgements, which follow from the name of
// the answer. A judge could not judge some of them.
func judged(g *events.CodeExecuted) {
	kinds := []events.Judge{events.JudgeFindings, events.JudgeScore, events.JudgeVerdict}
	g.Plan.Judges = events.JoinJudges(kinds...)
	g.Judged = &events.Judged{Judges: g.Plan.Judges, Engine: "test 1", Lines: 10, Answers: make([]events.Judgement, len(g.Answers))}
	for m := range g.Answers {
		hash := fnv.New32()
		fmt.Fprint(hash, g.Answers[m].LoadError, len(g.Answers[m].Golden))
		n := int(hash.Sum32() % 1000)
		j := &g.Judged.Answers[m]
		*j = events.Judgement{Lines: n % 20, Blocks: n % 3, Parses: n%4 > 0, Score: float64(n)/50 - 10, Safe: n%2 == 0}
		for i, severity := range []string{events.SeverityHigh, events.SeverityMedium, events.SeverityLow} {
			if n%(i+3) == 0 {
				j.Findings = append(j.Findings, events.Finding{ID: "B1", Severity: severity, Confidence: events.SeverityLow, Line: 1})
			}
		}
		if n%5 == 0 {
			j.Failures = []events.Unjudged{{Judge: kinds[n%3], Reason: "killed"}}
		}
	}
}

// probeKinds are all kinds of probes.
var probeKinds = []events.Probe{events.ProbeMutants, events.ProbeBranches}

// drawGroup draws a valid group with at least one answer that is not lost.
func drawGroup(t *rapid.T) *events.CodeExecuted {
	g := &events.CodeExecuted{ProblemID: "p"}
	suites := rapid.IntRange(0, 4).Draw(t, "N")
	for i := range rapid.IntRange(0, 4).Draw(t, "historical") {
		g.Historical = append(g.Historical, events.HistoricalTest{Call: fmt.Sprintf("f(%d)", i), Expected: "1", Count: 1})
	}
	golden := rapid.IntRange(1, 3).Draw(t, "golden tests")
	for m := range rapid.IntRange(1, 4).Draw(t, "M") {
		a := events.ExecutedAnswer{Loads: rapid.IntRange(0, 4).Draw(t, "loads") > 0, LoadError: fmt.Sprintf("answer %d", m)}
		if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
			a.Failure = "the sandbox died"
		}
		for range g.Historical {
			a.Historical = append(a.Historical, drawVerdict(t, a.Loads))
		}
		for range suites {
			a.Suites = append(a.Suites, drawSuite(t, a.Loads))
		}
		for range golden {
			a.Golden = append(a.Golden, events.GoldenVerdict{Verdict: drawVerdict(t, a.Loads)})
		}
		g.Answers = append(g.Answers, a)
	}
	for range golden {
		g.Predict = append(g.Predict, rapid.SampledFrom([]events.Predicted{events.PredictOutput, events.PredictInput, events.PredictNext, events.PredictState}).Draw(t, "kind"))
	}
	g.Plan = planFor(g, rapid.IntRange(1, 5).Draw(t, "K"))
	crossed(g)
	probed(g)
	judged(g)
	return g
}

func score(t *rapid.T, g *events.CodeExecuted, recipe Recipe) *events.GroupRewarded {
	if err := g.Validate(); err != nil {
		t.Fatalf("drew an invalid group: %v", err)
	}
	out, err := Score(recipe, g)
	if errors.Is(err, ErrAllMasked) {
		t.Skip("everything is masked")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Validate(); err != nil {
		t.Fatalf("the rewarded group is not valid: %v", err)
	}
	return out
}

func TestRewardsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		out := score(t, g, A1(rapid.Float64Range(0, 1).Draw(t, "alpha")))
		within := func(name string, x, low, high float64) {
			if math.IsNaN(x) || x < low-1e-12 || x > high+1e-12 {
				t.Fatalf("%s is %v, outside [%v, %v]", name, x, low, high)
			}
		}
		for m, a := range out.Code {
			within("R_code", a.Reward, 0, 1)
			if a.Masked && (a.Reward != 0 || a.Advantage != 0) {
				t.Fatalf("masked answer %d has reward %v, advantage %v", m, a.Reward, a.Advantage)
			}
			for _, s := range out.Test[m] {
				within("R_test", s.Reward, -1, 1)
				within("R_val", s.RVal, 0, 1)
				within("R_adv", s.RAdv, 0, 1)
				within("pass", s.Pass, 0, 1)
				within("pass_new + fail_new", s.PassNew+s.FailNew, 0, 2)
				within("pass_hist + fail_hist", s.PassHist+s.FailHist, 0, 1)
				if s.Masked && s != (events.SuiteReward{Masked: true}) {
					t.Fatalf("a masked suite of answer %d says %+v", m, s)
				}
			}
		}
		if top := out.TopVar; top >= 0 && !slices.ContainsFunc(out.Test[top], func(s events.SuiteReward) bool { return !s.Masked }) {
			t.Fatalf("the Test LLM shall learn from answer %d, whose suites are all masked", top)
		}
	})
}

// TestAdvantagesAreCentred: within a group of two or more, advantages sum to 0
// and order answers as their rewards do.
func TestAdvantagesAreCentred(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rewards := rapid.SliceOfN(rapid.Float64Range(-1, 1), 2, 16).Draw(t, "rewards")
		got := Advantages(rewards)
		sum := 0.0
		for i := range got {
			sum += got[i]
			for j := range got {
				if rewards[i] < rewards[j] && got[i] > got[j] {
					t.Fatalf("reward %v has advantage %v, reward %v has %v", rewards[i], got[i], rewards[j], got[j])
				}
			}
		}
		if math.Abs(sum) > 1e-6 {
			t.Fatalf("advantages sum to %v", sum)
		}
	})
}

// TestOrderOfAnswersAndSuitesDoesNotMatter: the same group with its answers
// and suites in another order earns the same, in that order.
func TestOrderOfAnswersAndSuitesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		recipe := drawRecipe(t)
		want := score(t, g, recipe)

		answers := rapid.Permutation(indices(len(g.Answers))).Draw(t, "answers")
		suites := rapid.Permutation(indices(g.Plan.Suites)).Draw(t, "suites")
		moved := *g
		moved.Answers = nil
		for _, m := range answers {
			a := g.Answers[m]
			a.Suites = permuted(a.Suites, suites)
			moved.Answers = append(moved.Answers, a)
		}
		crossed(&moved)
		probed(&moved)
		judged(&moved)
		got := score(t, &moved, recipe)

		expect := *want
		expect.Code, expect.Test = nil, nil
		for _, m := range answers {
			expect.Code = append(expect.Code, want.Code[m])
			expect.Test = append(expect.Test, permuted(want.Test[m], suites))
		}
		// TOPVAR and the order of increments depend on the order of the answers.
		byOrder := cmpopts.IgnoreFields(events.GroupRewarded{}, "TopVar", "Deltas")
		if diff := cmp.Diff(&expect, got, byOrder, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(net(want.Deltas), net(got.Deltas)); diff != "" {
			t.Fatalf("Mistake Book changes: %s", diff)
		}
		if want.TopVar >= 0 {
			a, b := spread(want.Test[want.TopVar]), spread(got.Test[got.TopVar])
			if math.Abs(a-b) > 1e-6 {
				t.Fatalf("TOPVAR chose a deviation of %v, then of %v", a, b)
			}
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func permuted[T any](in []T, order []int) []T {
	out := make([]T, 0, len(order))
	for _, i := range order {
		out = append(out, in[i])
	}
	return out
}

func net(deltas []events.BookDelta) map[events.BookDelta]int {
	out := map[events.BookDelta]int{}
	for _, d := range deltas {
		sign := 1
		if d.Change < 0 {
			sign = -1
		}
		out[events.BookDelta{Call: d.Call, Expected: d.Expected, Change: sign}] += d.Change
	}
	return out
}

func spread(suites []events.SuiteReward) float64 {
	_, rewards := unmasked(suites)
	_, squares := moments(rewards)
	return math.Sqrt(squares / float64(len(rewards)))
}

// TestAFailureNeverPaysTheCodeLLM: turning one passed test, new or historical,
// into a failed one never raises R_code and never lowers R_adv where the test
// is new. A failed historical test does lower R_adv.
func TestAFailureNeverPaysTheCodeLLM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		before := score(t, g, A1(DefaultAlpha))

		type index struct{ answer, suite, test int }
		var passed []index
		for m := range g.Answers {
			for i, v := range g.Answers[m].Historical {
				if v == pass {
					passed = append(passed, index{m, -1, i})
				}
			}
			for n := range g.Answers[m].Suites {
				for i, test := range g.Answers[m].Suites[n].Tests {
					if test.Verdict == pass {
						passed = append(passed, index{m, n, i})
					}
				}
			}
		}
		if len(passed) == 0 {
			t.Skip("nothing passed")
		}
		p := rapid.SampledFrom(passed).Draw(t, "flipped")
		to := rapid.SampledFrom([]events.Verdict{fail, raised, timeout}).Draw(t, "to")
		a := &g.Answers[p.answer]
		if p.suite < 0 {
			a.Historical[p.test] = to
		} else {
			a.Suites[p.suite].Tests[p.test].Verdict = to
		}
		after := score(t, g, A1(DefaultAlpha))

		if x, y := before.Code[p.answer].Reward, after.Code[p.answer].Reward; y > x+1e-12 {
			t.Fatalf("R_code rose from %v to %v", x, y)
		}
		for n := range after.Test[p.answer] {
			x, y := before.Test[p.answer][n].RAdv, after.Test[p.answer][n].RAdv
			if p.suite < 0 && y > x+1e-12 {
				t.Fatalf("a historical failure raised R_adv of suite %d from %v to %v", n, x, y)
			}
			if p.suite >= 0 && y < x-1e-12 {
				t.Fatalf("a new failure lowered R_adv of suite %d from %v to %v", n, x, y)
			}
		}
		for m := range after.Code {
			if m != p.answer && after.Code[m].Reward != before.Code[m].Reward {
				t.Fatalf("answer %d earned %v, now %v", m, before.Code[m].Reward, after.Code[m].Reward)
			}
		}
	})
}

// TestMaskingIsAbsence: a lost answer changes the others exactly as if it had
// never been sampled.
func TestMaskingIsAbsence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGroup(t)
		if len(g.Answers) < 2 {
			t.Skip("one answer only")
		}
		lost := rapid.IntRange(0, len(g.Answers)-1).Draw(t, "lost answer")
		without := *g
		without.Answers = slices.Delete(slices.Clone(g.Answers), lost, lost+1)
		without.Plan.Answers--
		g.Answers[lost].Failure = "the sandbox died"
		crossed(g)
		crossed(&without)
		probed(g)
		judged(g)
		probed(&without)
		judged(&without)

		recipe := drawRecipe(t)
		with, want := score(t, g, recipe), score(t, &without, recipe)
		if diff := cmp.Diff(want.Code, slices.Delete(slices.Clone(with.Code), lost, lost+1)); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(want.Test, slices.Delete(slices.Clone(with.Test), lost, lost+1)); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(want.Deltas, with.Deltas); diff != "" {
			t.Fatalf("Mistake Book changes: %s", diff)
		}
	})
}
