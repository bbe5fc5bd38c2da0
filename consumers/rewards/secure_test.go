package rewards

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

// judgedGroup returns a group of answers, each with a letter for each golden test: p for
// one that it passes.
func judgedGroup(judge events.Judge, truthLines int, passed []string, answers []events.Judgement) *events.CodeExecuted {
	g := &events.CodeExecuted{ProblemID: "p"}
	for _, row := range passed {
		g.Answers = append(g.Answers, events.ExecutedAnswer{Loads: row != "", Golden: goldens(row)})
	}
	g.Plan = planFor(g, 0)
	g.Plan.Judges = string(judge)
	g.Judged = &events.Judged{Judges: g.Plan.Judges, Engine: "test 1", Lines: truthLines, Answers: answers}
	return g
}

// The values were computed by hand.
func TestSecure(t *testing.T) {
	of := func(severities string) (all []events.Finding) {
		for severity := range strings.FieldsSeq(severities) {
			all = append(all, events.Finding{ID: "B101", Severity: severity, Confidence: events.SeverityLow, Line: 1})
		}
		return all
	}
	g := judgedGroup(events.JudgeFindings, 10, []string{"pp", "pp", "pf", "pp", "pp", "pp", "pp", "", "pp"}, []events.Judgement{
		{Lines: 10},                              // 1
		{Lines: 15, Findings: of("low medium")},  // 1 - 0.1 - 0.5
		{Lines: 5, Findings: of("low low")},      // (1 - 0.2)/2
		{Lines: 16},                              // 1/2: it is too long
		{Lines: 4, Findings: of("low")},          // 0.9/2: it is too short
		{Lines: 10, Findings: of("high")},        // 0
		{Lines: 10, Findings: of("medium high")}, // 0, not less
		{Lines: 1, Failures: []events.Unjudged{{Judge: events.JudgeFindings, Reason: "it does not parse"}}}, // does not load
		{Lines: 10, Failures: []events.Unjudged{{Judge: events.JudgeFindings, Reason: "killed"}}},           // not measured
	})
	out := mustScore(t, recipeNamed(t, NameSecure), g)
	code, _ := rewardsOf(out)
	if diff := cmp.Diff([]float64{1, 0.4, 0.4, 0.5, 0.45, 0, 0, 0, 0}, code, near8); diff != "" {
		t.Error(diff)
	}
	if !out.Code[8].Masked || out.Code[8].Advantage != 0 || out.Code[7].Masked || out.Code[7].Advantage == 0 {
		t.Errorf("an answer that does not load: %+v; one without a measurement: %+v", out.Code[7], out.Code[8])
	}
	for i := range g.Judged.Answers {
		g.Judged.Answers[i].Failures = []events.Unjudged{{Judge: events.JudgeFindings, Reason: "killed"}}
	}
	g.Answers[7].Loads = true
	if _, err := Score(recipeNamed(t, NameSecure), g); err == nil || !strings.Contains(err.Error(), ErrAllMasked.Error()) {
		t.Errorf("a group without a measurement: %v", err)
	}
}

// The values were computed by hand. Suites and the Mistake Book are those of a1, except that
// the suites of an answer without a judgement take no part.
func TestSecureA1(t *testing.T) {
	suite := func(verdicts ...events.Verdict) events.ExecutedSuite {
		s := events.ExecutedSuite{Chars: 10}
		for _, v := range verdicts {
			s.Tests = append(s.Tests, kept(v))
		}
		return s
	}
	answer := func(loads bool, suites ...events.ExecutedSuite) events.ExecutedAnswer {
		return events.ExecutedAnswer{Loads: loads, Suites: suites}
	}
	g := &events.CodeExecuted{ProblemID: "p", Answers: []events.ExecutedAnswer{
		answer(true, suite(pass, fail), suite(pass, pass)), // 0.75 under a1, safety 0.9
		answer(true, suite(pass, pass), suite(pass, pass)), // 1 under a1, safety 0.4, too long
		answer(true, suite(fail, fail), suite(pass, pass)), // not measured
		answer(false, suite(notRun, notRun), suite(notRun, notRun)),
	}}
	g.Plan = planFor(g, 2)
	g.Plan.Judges = string(events.JudgeFindings)
	finding := func(severity string) events.Finding {
		return events.Finding{ID: "B101", Severity: severity, Confidence: events.SeverityLow, Line: 1}
	}
	g.Judged = &events.Judged{Judges: g.Plan.Judges, Engine: "test 1", Lines: 10, Answers: []events.Judgement{
		{Lines: 10, Findings: []events.Finding{finding(events.SeverityLow)}},
		{Lines: 16, Findings: []events.Finding{finding(events.SeverityLow), finding(events.SeverityMedium)}},
		{Lines: 10, Failures: []events.Unjudged{{Judge: events.JudgeFindings, Reason: "killed"}}},
		{Lines: 10},
	}}
	out := mustScore(t, recipeNamed(t, NameSecureA1), g)
	code, test := rewardsOf(out)
	if diff := cmp.Diff([]float64{0.675, 0.2, 0, 0}, code, near8); diff != "" {
		t.Errorf("answers: %s", diff)
	}
	if diff := cmp.Diff([][]float64{{0.75, 0.5}, {0.5, 0.5}, {0, 0}, {0, 0}}, test, near8); diff != "" {
		t.Errorf("suites: %s", diff)
	}
	if !out.Code[2].Masked || !out.Test[2][0].Masked || !out.Test[2][1].Masked || out.Code[3].Masked || out.TopVar != 0 {
		t.Errorf("an answer without a judgement: %+v, %+v; one that does not load: %+v; the Test LLM learns from answer %d", out.Code[2], out.Test[2], out.Code[3], out.TopVar)
	}
	plain := mustScore(t, recipeNamed(t, NameA1), g)
	if diff := cmp.Diff(plain.Deltas, out.Deltas); diff != "" || plain.TopVar != 2 {
		t.Errorf("the Mistake Book: %s; a1 chooses answer %d", diff, plain.TopVar)
	}
}

// The values were computed by hand from the authors' terms.
func TestSecCoderX(t *testing.T) {
	g := judgedGroup(events.JudgeVerdict, 10, []string{"pp", "pf", "pp", "pp", "ff", "pp", "pp", "pp"}, []events.Judgement{
		{Lines: 10, Blocks: 1, Safe: true}, // 1 + 2 + 1 + 2 + 2
		{Lines: 15, Blocks: 2, Safe: true}, // 1 + 2 + 1 + 2 + 1
		{Lines: 15},                        // 0 + 0 + 1
		{Lines: 16, Blocks: 1, Safe: true}, // 1 + 2
		{Lines: 7, Blocks: 1, Safe: true},  // 1 + 2 - 0.5 - 1
		{Lines: 5, Blocks: 1, Safe: true},  // 1 + 2 - 0.5 - 1 - 1
		{Lines: 4, Blocks: 1, Safe: true},  // 1 + 2 - 2 - 4 - 4
		{Lines: 8, Blocks: 1},              // 1 + 1
	})
	code, _ := rewardsOf(mustScore(t, recipeNamed(t, NameSecCoderX), g))
	if diff := cmp.Diff([]float64{8, 7, 1, 3, 1.5, 0.5, -7, 2}, code, near8); diff != "" {
		t.Error(diff)
	}
}

// The values were computed by hand: ln 2, ln(1 + e), ln(1 + 1/e).
func TestCodeScaler(t *testing.T) {
	g := judgedGroup(events.JudgeScore, 10, []string{"p", "p", "p", "p", "p", "p", "", "p"}, []events.Judgement{
		{Blocks: 1, Parses: true}, {Blocks: 1, Parses: true, Score: 1}, {Blocks: 1, Parses: true, Score: -1}, {Blocks: 1, Parses: true, Score: 1000},
		{Blocks: 2, Parses: true, Score: 1}, {Blocks: 1, Score: 1}, {Blocks: 1, Parses: true, Score: 1}, {Score: 1},
	})
	code, _ := rewardsOf(mustScore(t, recipeNamed(t, NameCodeScaler), g))
	if diff := cmp.Diff([]float64{0.69314718, 1.31326169, 0.31326169, 1000, 0, 0, 0, 0}, code, near8); diff != "" {
		t.Error(diff)
	}
	for _, x := range []float64{-1e308, -745, -40, -1e-300, 0, 1e-300, 40, 710, 1e308} {
		if y := softplus(x); math.IsNaN(y) || math.IsInf(y, 0) || y < max(x, 0) {
			t.Errorf("ln(1 + exp(%v)) is %v", x, y)
		}
	}
	if y := softplus(-40); math.Abs(y/math.Exp(-40)-1) > 1e-15 {
		t.Errorf("ln(1 + exp(-40)) is %v", y)
	}
}
