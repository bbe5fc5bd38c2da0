package rewards

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codea1/events"
)

// goldens returns golden verdicts in the letters of testdata/stories.
func goldens(s string) (out []events.GoldenVerdict) {
	verdicts, _ := parseVerdicts(s)
	for _, v := range verdicts {
		out = append(out, events.GoldenVerdict{Verdict: v})
	}
	return out
}

// taught is a group of three answers with two suites each: the first answer is
// right, the second passes one golden test of two, the third does not load. On all
// answers that load, f(1) == 1 is passed by the first one, f(2) == 2 by both, and
// f(3) == 9 by the second one; the true value of f(3) is 3.
func taught() *events.CodeExecuted {
	test := func(call, stated, expected string) events.ExecutedTest {
		t := kept(notRun)
		t.Call, t.Stated, t.Expected, t.Wrong = call, stated, expected, stated != expected
		return t
	}
	one, two, three := test("f(1)", "1", "1"), test("f(2)", "2", "2"), test("f(3)", "9", "3")
	suite := func(tests ...events.ExecutedTest) events.ExecutedSuite {
		return events.ExecutedSuite{Chars: 10, Tests: tests}
	}
	g := &events.CodeExecuted{ProblemID: "p", Answers: []events.ExecutedAnswer{
		{Loads: true, Golden: goldens("pp"), Suites: []events.ExecutedSuite{suite(one, two, discarded(events.StatusUnparsable)), suite(three, discarded(events.StatusDuplicate))}},
		{Loads: true, Golden: goldens("pf"), Suites: []events.ExecutedSuite{suite(one), suite()}},
		{Golden: goldens("nn"), Suites: []events.ExecutedSuite{suite(two), suite(two, three)}},
	}}
	g.Predict = []events.Predicted{events.PredictOutput, events.PredictNext}
	g.Plan = planFor(g, 2)
	probed(g)
	judged(g)
	for m := range g.Judged.Answers {
		g.Judged.Answers[m].Failures = nil
	}
	matrix(g, map[events.CrossTest]string{{Call: "f(1)", Value: "1"}: "pf", {Call: "f(2)", Value: "2"}: "pp", {Call: "f(3)", Value: "3"}: "pf", {Call: "f(3)", Value: "9"}: "fp"})
	return g
}

// matrix sets the cross of a group: for each test a letter per answer that loads.
func matrix(g *events.CodeExecuted, verdicts map[events.CrossTest]string) {
	tests := g.CrossTests()
	g.Plan.Cross, g.Cross = true, events.NewCross(len(tests), len(g.Answers))
	for i, test := range tests {
		for m, letter := range verdicts[test] {
			g.Cross.Set(m, i, letters[letter])
		}
	}
}

func recipeNamed(t *testing.T, name string) Recipe {
	t.Helper()
	r, err := New(name, DefaultAlpha)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func rewardsOf(g *events.GroupRewarded) (code []float64, test [][]float64) {
	for m := range g.Code {
		code = append(code, g.Code[m].Reward)
		row := []float64{}
		for n := range g.Test[m] {
			row = append(row, g.Test[m][n].Reward)
		}
		test = append(test, row)
	}
	return code, test
}

func TestVerpo(t *testing.T) {
	g := taught()
	got := mustScore(t, recipeNamed(t, NameVerpo), g)
	// rho = 2/3, 1/3; std 1/6, s = 1/12; N = 1 + exp(-(1/9)/(2/144)) = 1 + exp(-8) = 1.00033546
	// w = exp(-4/3)/1.00033646 = 0.26350848, exp(-2/3)/1.00033646 = 0.51324443
	// R = 0.995 + 0.5*0.77675291, 0.5*0.26350848, 0; mean 0.50504357
	code, _ := rewardsOf(got)
	if diff := cmp.Diff([]float64{1.38337645, 0.13175424, 0}, code, near8); diff != "" {
		t.Error(diff)
	}
	code, _ = advantagesOf(got)
	if diff := cmp.Diff([]float64{0.87833289, -0.37328933, -0.50504357}, code, near8); diff != "" {
		t.Error(diff)
	}
	if got.TopVar != -1 || got.Deltas != nil {
		t.Errorf("answer %d, changes %v; verpo trains no Test LLM", got.TopVar, got.Deltas)
	}
	// Two tests with the same rate: s = 0.001, N = 2, w = exp(-1)/2.000001 = 0.18393963.
	g.Answers = g.Answers[:2]
	g.Answers[0].Golden, g.Answers[1].Golden = goldens("pf"), goldens("fp")
	g.Plan = planFor(g, 2)
	matrix(g, nil)
	code, _ = rewardsOf(mustScore(t, recipeNamed(t, NameVerpo), g))
	if diff := cmp.Diff([]float64{0.09196981, 0.09196981}, code, near8); diff != "" {
		t.Error(diff)
	}
}

func TestCure(t *testing.T) {
	g := taught()
	got := mustScore(t, recipeNamed(t, NameCure), g)
	code, test := rewardsOf(got)
	if diff := cmp.Diff([]float64{1, 0.5, 0}, code, approx); diff != "" { // golden pass rates
		t.Error(diff)
	}
	// One answer is good. f(1): right, both others fail it: 1. f(2): right, one of
	// two fails it: 0.5. f(3) == 9: wrong, one of two passes it: -0.5. Unparsable: 0.
	// (1 + 0.5 + 0)/3, -0.5; 1, 0; 0.5, (0.5 - 0.5)/2
	if diff := cmp.Diff([][]float64{{0.5, -0.5}, {1, 0}, {0.5, 0}}, test, approx); diff != "" {
		t.Error(diff)
	}
	// Mean 0.5, population std sqrt(0.5/3) = 0.40824829; suites of answer 0: 0.5/0.5.
	code, test = advantagesOf(got)
	if diff := cmp.Diff([]float64{1.22474487, 0, -1.22474487}, code, near8); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]float64{{1, -1}, {1, -1}, {1, -1}}, test, near8); diff != "" {
		t.Error(diff)
	}
	if got.TopVar != 0 || got.Deltas != nil {
		t.Errorf("answer %d, changes %v", got.TopVar, got.Deltas)
	}

	t.Run("no good answer", func(t *testing.T) {
		g := taught()
		g.Answers[0].Golden = goldens("fp")
		got := mustScore(t, recipeNamed(t, NameCure), g)
		if _, test := rewardsOf(got); got.TopVar != -1 || !cmp.Equal(test, [][]float64{{0, 0}, {0, 0}, {0, 0}}) {
			t.Errorf("the Test LLM learns from answer %d: %v", got.TopVar, test)
		}
	})
	t.Run("no bad answer", func(t *testing.T) {
		g := taught()
		g.Answers[1].Golden = goldens("pp")
		g.Answers = g.Answers[:2]
		g.Plan = planFor(g, 2)
		matrix(g, map[events.CrossTest]string{{Call: "f(1)", Value: "1"}: "pp", {Call: "f(2)", Value: "2"}: "pf"})
		// f(1): 1. f(2): -1. Unparsable: -1. f(3) == 9: -1. A suite without a test: -1.
		_, test := rewardsOf(mustScore(t, recipeNamed(t, NameCure), g))
		if diff := cmp.Diff([][]float64{{-1.0 / 3, -1}, {1, -1}}, test, approx); diff != "" {
			t.Error(diff)
		}
	})
}

func TestUtrl(t *testing.T) {
	got := mustScore(t, recipeNamed(t, NameUtrl), taught())
	code, test := rewardsOf(got)
	// The valid tests are f(1) and f(2): 0.9*2/2 + 0.1, 0.9*1/2 + 0.1, and 0 for the
	// answer that does not load.
	if diff := cmp.Diff([]float64{1, 0.55, 0}, code, approx); diff != "" {
		t.Error(diff)
	}
	// f(1), f(2), unparsable: 0.85*2/3 + 0.05*2/12 = 0.575. f(3), duplicate: 0.1.
	// f(1): 0.1 + 0.85*2/3 + 0.05/12 = 0.67083333. None: 0.
	// f(2): 0.1 + 0.85/3 + 0.05/12 = 0.3875. f(2), f(3): the same.
	if diff := cmp.Diff([][]float64{{0.575, 0.1}, {0.67083333, 0}, {0.3875, 0.3875}}, test, near8); diff != "" {
		t.Error(diff)
	}
	// 0.05*13/13 for 13 valid tests, which no answer fails.
	g := taught()
	g.Answers = g.Answers[:1]
	g.Answers[0].Suites = g.Answers[0].Suites[:1]
	s := &g.Answers[0].Suites[0]
	s.Tests = nil
	for i := range 13 {
		test := kept(notRun)
		test.Call = fmt.Sprintf("f(%d)", i)
		s.Tests = append(s.Tests, test)
	}
	g.Plan = planFor(g, 2)
	matrix(g, nil)
	if _, test = rewardsOf(mustScore(t, recipeNamed(t, NameUtrl), g)); !cmp.Equal(test, [][]float64{{0.15}}, approx) {
		t.Errorf("have %v, want 0.15", test)
	}
}

func TestMutation(t *testing.T) {
	test := func(call string) events.ExecutedTest {
		t := kept(notRun)
		t.Call, t.Stated = call, t.Expected
		return t
	}
	wrong := test("f(4)")
	wrong.Stated, wrong.Wrong = "9", true
	one, two, three := test("f(1)"), test("f(2)"), test("f(3)")
	twice, broken := discarded(events.StatusDuplicate), discarded(events.StatusUnparsable)
	var suites []events.ExecutedSuite
	for _, tests := range [][]events.ExecutedTest{
		{one, two, three}, {two, one, broken}, {one, twice, twice, twice}, {wrong, three}, {}, {discarded(events.StatusRaised), broken},
	} {
		suites = append(suites, events.ExecutedSuite{Chars: 10, Tests: tests})
	}
	one.Verdict, two.Verdict, three.Verdict = pass, fail, pass
	suites = append(suites, events.ExecutedSuite{Chars: 10, Tests: []events.ExecutedTest{one, two, three}})
	g := &events.CodeExecuted{ProblemID: "p", Answers: []events.ExecutedAnswer{{Loads: true, Suites: suites}, {Failure: "lost"}}}
	g.Plan = planFor(g, 3)
	g.Plan.Suites = len(suites)
	// Of 6 mutants, f(1) fails 0 and 1, f(2) fails 1, f(3) fails 2, f(4) fails 1 and 3. The
	// others are not known.
	p := events.NewProbes(events.ProbeMutants, "test-1", strings.Repeat("0", 64), 6, 4)
	for call, mutants := range map[string][]int{"f(1)": {0, 1}, "f(2)": {1}, "f(3)": {2}, "f(4)": {1, 3}} {
		at := slices.IndexFunc(g.ProbedTests(), func(t events.CrossTest) bool { return t.Call == call })
		for _, i := range mutants {
			p.Hit(at, i)
		}
	}
	g.Plan.Probes, g.Probes = string(events.ProbeMutants), []events.Probes{p}
	got := mustScore(t, recipeNamed(t, NameMutation), g)
	code, rewards := rewardsOf(got)
	want := []float64{
		3.0/4 - 0.1*2,       // f(2) is useless in place 2
		2.0/4 - 0.5/3,       // the order matters: no test is useless
		2.0/4 - 0.1*(2+3+3), // places after the third are the third
		1.0/4 - 0.5/2,       // a value that is wrong as stated kills nothing
		-0.5,                // no statement
		-0.5,                //
		3.0/4 - 0.1*2,       // verdicts on the answer do not count
	}
	if diff := cmp.Diff([][]float64{want, make([]float64, len(want))}, rewards, approx); diff != "" {
		t.Error(diff)
	}
	a1, _ := rewardsOf(mustScore(t, A1(DefaultAlpha), g))
	if !cmp.Equal(a1, code) || code[0] == 0 || !got.Code[1].Masked || got.TopVar != 0 {
		t.Errorf("answers earn %v, under a1 %v; TOPVAR %d", code, a1, got.TopVar)
	}
	g.Probes[0] = events.NewProbes(events.ProbeMutants, "test-1", strings.Repeat("0", 64), 0, 4)
	if _, rewards = rewardsOf(mustScore(t, recipeNamed(t, NameMutation), g)); rewards[0][0] != 0 || !cmp.Equal(rewards[0][1], -0.5/3, approx) {
		t.Errorf("without a known mutant, suites earn %v", rewards[0])
	}
}

func TestCoverage(t *testing.T) {
	test := func(call string) events.ExecutedTest {
		t := kept(pass)
		t.Call, t.Stated = call, t.Expected
		return t
	}
	wrong := test("f(3)")
	wrong.Stated, wrong.Wrong = "9", true
	one, two := test("f(1)"), test("f(2)")
	var suites []events.ExecutedSuite
	for _, tests := range [][]events.ExecutedTest{
		{one, two, discarded(events.StatusDuplicate)}, {one}, {one, wrong}, {}, {two, discarded(events.StatusUnparsable)}, {discarded(events.StatusRaised)},
	} {
		suites = append(suites, events.ExecutedSuite{Chars: 10, Tests: tests})
	}
	g := &events.CodeExecuted{ProblemID: "p", Answers: []events.ExecutedAnswer{{Loads: true, Suites: suites}}}
	g.Plan = planFor(g, 3)
	// Of 4 branches, f(1) takes 0 and 1, f(2) takes 1 and 2.
	p := events.NewProbes(events.ProbeBranches, "test-1", strings.Repeat("0", 64), 4, 3)
	p.Difficulty = 0.25
	for i, t := range g.ProbedTests() {
		switch t.Call {
		case "f(1)":
			p.Hit(i, 0)
			p.Hit(i, 1)
		case "f(2)":
			p.Hit(i, 1)
			p.Hit(i, 2)
		}
	}
	g.Plan.Probes, g.Probes = string(events.ProbeBranches), []events.Probes{p}
	code, rewards := rewardsOf(mustScore(t, recipeNamed(t, NameCoverage), g))
	// 1.25 (e^2.25 - 1)/(e^3 - 1) = 1.25*8.487736/19.085537, and with e^1.5 = 4.481689.
	if diff := cmp.Diff([][]float64{{0.55590104, 0.22803190, -1.75, -1.75, -1.75, -1.75}}, rewards, near8); diff != "" {
		t.Error(diff)
	}
	if a1, _ := rewardsOf(mustScore(t, A1(DefaultAlpha), g)); !cmp.Equal(a1, code) || code[0] == 0 {
		t.Errorf("answers earn %v, under a1 %v", code, a1)
	}
	g.Probes[0] = events.NewProbes(events.ProbeBranches, "test-1", strings.Repeat("0", 64), 0, 3)
	if _, rewards = rewardsOf(mustScore(t, recipeNamed(t, NameCoverage), g)); rewards[0][1] != 1 || rewards[0][3] != -2 {
		t.Errorf("without branches, suites earn %v", rewards[0])
	}
}

// The rewards of answers with an output and three lines about steps were computed by hand.
func TestExecVerify(t *testing.T) {
	g := &events.CodeExecuted{ProblemID: "p", Predict: []events.Predicted{events.PredictOutput, events.PredictNext, events.PredictNext, events.PredictState}}
	for _, verdicts := range []string{"pppp", "ppff", "pfff", "fppp"} {
		g.Answers = append(g.Answers, events.ExecutedAnswer{Loads: true, Golden: goldens(verdicts)})
	}
	g.Answers = append(g.Answers, events.ExecutedAnswer{LoadError: "5 lines"}, events.ExecutedAnswer{Failure: "lost"})
	g.Plan = planFor(g, 0)
	got := mustScore(t, recipeNamed(t, NameExecVerify), g)
	code, _ := rewardsOf(got)
	if diff := cmp.Diff([]float64{2, 1 + 1.0/3, 1, 0, 0, 0}, code, approx); diff != "" || !got.Code[5].Masked || got.TopVar != -1 || got.Deltas != nil {
		t.Errorf("%+v, TOPVAR %d: %s", got.Code[5], got.TopVar, diff)
	}
	// Without lines about steps, a right input or output is all.
	for _, kind := range []events.Predicted{events.PredictInput, events.PredictOutput} {
		g.Predict, g.Answers = []events.Predicted{kind}, []events.ExecutedAnswer{{Loads: true, Golden: goldens("p")}, {Loads: true, Golden: goldens("f")}}
		g.Plan = planFor(g, 0)
		if code, _ := rewardsOf(mustScore(t, recipeNamed(t, NameExecVerify), g)); !cmp.Equal(code, []float64{2, 0}) {
			t.Errorf("%s: have %v, want 2 and 0", kind, code)
		}
	}
}

// A group without a field that a recipe needs has no rewards, and the error names the
// field.
func TestRecipesRefuseWhatIsNotMeasured(t *testing.T) {
	without := map[error]func(*events.CodeExecuted){
		ErrNoGolden:  func(g *events.CodeExecuted) { g.Answers[1].Golden = nil },
		ErrNoCross:   func(g *events.CodeExecuted) { g.Cross = nil },
		ErrNoProbes:  func(g *events.CodeExecuted) { g.Probes = nil },
		ErrNoPredict: func(g *events.CodeExecuted) { g.Predict = nil },
		ErrNotJudged: func(g *events.CodeExecuted) { g.Judged = nil },
	}
	for _, name := range Names() {
		recipe := recipeNamed(t, name)
		for missing, remove := range without {
			g := taught()
			remove(g)
			out, err := Score(recipe, g)
			rules := recipe.Rules()
			switch needs := map[error]bool{ErrNoGolden: rules.Golden || rules.Predict, ErrNoCross: rules.Cross, ErrNoProbes: rules.Probe != "", ErrNoPredict: rules.Predict, ErrNotJudged: rules.Judge != ""}[missing]; {
			case !needs && err != nil:
				t.Errorf("%s does not need it: %v", name, err)
			case needs && (!errors.Is(err, missing) || out != nil || !strings.Contains(err.Error(), "recipe "+name)):
				t.Errorf("%s: %v, %v; want %v", name, out, err, missing)
			}
		}
	}
	odd := taught()
	odd.Answers[1].Golden = goldens("p")
	if _, err := Score(recipeNamed(t, NameCure), odd); !errors.Is(err, ErrNoGolden) {
		t.Errorf("answers with other numbers of golden tests: %v", err)
	}
	odd = taught()
	odd.Answers[0].Suites[0].Tests[0].Call = "f(7)"
	odd.Answers[0].Suites[1].Tests[0].Call = "f(8)"
	if _, err := Score(recipeNamed(t, NameUtrl), odd); !errors.Is(err, ErrNoCross) {
		t.Errorf("a cross of other tests: %v", err)
	}
	for _, name := range []string{NameMutation, NameCoverage} {
		if _, err := Score(recipeNamed(t, name), odd); !errors.Is(err, ErrNoProbes) {
			t.Errorf("%s with the probes of other tests: %v", name, err)
		}
	}
}

// A group that was encoded and decoded, as in a log, earns the same bit by bit.
func TestRecordedGroupsEarnTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, recipe := drawGroup(t), drawRecipe(t)
		live := score(t, g, recipe)
		message, err := events.Encode(events.New("r", g.Plan.GroupID(), "x", noon, g))
		if err != nil {
			t.Fatal(err)
		}
		e, err := message.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(live, score(t, e.Payload.(*events.CodeExecuted), recipe)); diff != "" {
			t.Fatalf("%s (-live +recorded):\n%s", recipe.Name(), diff)
		}
	})
}

// docs/recipes.md and the help of --reward have every recipe.
func TestRecipesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	field, _ := reflect.TypeFor[Flags]().FieldByName("Reward")
	for _, name := range Names() {
		if !strings.Contains(string(page), "\n## `"+name+"`\n") || !strings.Contains(string(page), "\n| `"+name+"` |") {
			t.Errorf("docs/recipes.md has no row or no section of %s", name)
		}
		if !strings.Contains(field.Tag.Get("help"), name) {
			t.Errorf("the help of --reward lacks %s", name)
		}
	}
}

// Rewards that are equal up to rounding have no advantage.
func TestStandardised(t *testing.T) {
	for _, tt := range []struct{ rewards, want []float64 }{
		{[]float64{0, 1}, []float64{-1, 1}},
		{[]float64{0.1 + 0.2, 0.3}, []float64{0, 0}},
		{[]float64{0.25}, []float64{0.25}},
		{nil, nil},
	} {
		if diff := cmp.Diff(tt.want, Standardised(tt.rewards)); diff != "" {
			t.Errorf("%v: %s", tt.rewards, diff)
		}
	}
}
