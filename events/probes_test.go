package events

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tests of a group are probed once each, with their true values and in turn. There
// are no more than MaxProbedTests, and none of a suite or an answer that was lost.
func TestProbedTestsAreBounded(t *testing.T) {
	var g CodeExecuted
	for m := range 3 {
		suite := ExecutedSuite{}
		for i := range MaxProbedTests {
			suite.Tests = append(suite.Tests, ExecutedTest{Status: StatusKept, Call: fmt.Sprintf("f(%d, %d)", m, i), Expected: "1", Stated: "2", Wrong: true})
		}
		g.Answers = append(g.Answers, ExecutedAnswer{Loads: true, Suites: []ExecutedSuite{suite, suite}})
	}
	g.Answers[0].Failure, g.Answers[1].Suites[0].Failure = "sandbox died", "sandbox died"
	tests := g.ProbedTests()
	if len(tests) != MaxProbedTests {
		t.Fatalf("%d tests", len(tests))
	}
	if diff := cmp.Diff([]CrossTest{{"f(1, 0)", "1"}, {"f(2, 0)", "1"}, {"f(1, 1)", "1"}}, tests[:3]); diff != "" {
		t.Error(diff)
	}
}

func TestProbesAreChecked(t *testing.T) {
	valid := func() Probes { return NewProbes(ProbeMutants, "mutants-1", strings.Repeat("0", 64), 9, 2) }
	for name, spoil := range map[string]func(*Probes){
		"a kind that is none":      func(p *Probes) { p.Probe = "lines" },
		"no engine":                func(p *Probes) { p.Engine = "" },
		"no hash":                  func(p *Probes) { p.Hash = "ab" },
		"too many probes":          func(p *Probes) { *p = NewProbes(ProbeMutants, "m", p.Hash, MaxProbes+1, 0) },
		"less than no probe":       func(p *Probes) { p.Total = -1 },
		"too many tests":           func(p *Probes) { *p = NewProbes(ProbeMutants, "m", p.Hash, 1, MaxProbedTests+1) },
		"a row that is too short":  func(p *Probes) { p.Hits[1] = Bits{1} },
		"a difficulty over 1":      func(p *Probes) { p.Difficulty = 1.5 },
		"a difficulty of NaN":      func(p *Probes) { p.Difficulty = math.NaN() },
		"a bit after the last one": func(p *Probes) { p.Hits[1] = Bits{0, 2} },
	} {
		p := valid()
		if err := p.validate(); err != nil {
			t.Fatal(err)
		}
		if spoil(&p); p.validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	p := NewProbes(ProbeMutants, "mutants-1", strings.Repeat("0", 64), 0, 3)
	if err := p.validate(); err != nil {
		t.Errorf("a ground truth without mutants: %v", err)
	}
	group := *samples()[4].(*CodeExecuted)
	if group.Probes = append(group.Probes, group.Probes[0]); group.Validate() == nil {
		t.Error("two sets of one kind are accepted")
	}
	for plan, ok := range map[string]bool{"": true, "mutants": true, "mutants,branches": true, "branches,mutants": false, "mutants,mutants": false, "lines": false, ",": false} {
		p := samplePlan()
		if p.Probes = plan; (p.Validate() == nil) != ok {
			t.Errorf("%q: %v", plan, p.Validate())
		}
	}
}

// The judgements of a group are those of its judges, with finite scores and a reason for
// each answer that a judge could not judge.
func TestJudgementsAreChecked(t *testing.T) {
	valid := func() *Judged {
		return &Judged{Judges: "findings", Lines: 1, Answers: []Judgement{
			{Findings: []Finding{{ID: "B101", Severity: SeverityLow, Confidence: SeverityHigh, Line: 1}}}, {Failures: []Unjudged{{JudgeFindings, "killed"}}},
		}}
	}
	for name, spoil := range map[string]func(*Judged){
		"no judge":                      func(j *Judged) { j.Judges = "" },
		"a judge that is none":          func(j *Judged) { j.Judges = "jury" },
		"judges in another order":       func(j *Judged) { j.Judges = "score,findings" },
		"an answer too few":             func(j *Judged) { j.Answers = j.Answers[:1] },
		"less than no line":             func(j *Judged) { j.Lines = -1 },
		"a score of NaN":                func(j *Judged) { j.Answers[0].Score = math.NaN() },
		"an infinite score":             func(j *Judged) { j.Answers[0].Score = math.Inf(1) },
		"too many findings":             func(j *Judged) { j.Answers[0].Findings = make([]Finding, MaxFindings+1) },
		"a severity that is none":       func(j *Judged) { j.Answers[0].Findings[0].Severity = "huge" },
		"a finding without a name":      func(j *Judged) { j.Answers[0].Findings[0].ID = "" },
		"a failure without a reason":    func(j *Judged) { j.Answers[1].Failures[0].Reason = "" },
		"a failure of another judge":    func(j *Judged) { j.Answers[1].Failures[0].Judge = JudgeScore },
		"an engine with too many bytes": func(j *Judged) { j.Engine = strings.Repeat("x", MaxTextBytes+1) },
	} {
		j := valid()
		if err := j.validate(2); err != nil {
			t.Fatal(err)
		}
		if spoil(j); j.validate(2) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	var none *Judged
	if j := valid(); none.validate(2) != nil || none.Has(JudgeFindings) || !j.Has(JudgeFindings) || j.Has(JudgeScore) || j.Answers[1].Failure(JudgeFindings) != "killed" {
		t.Error("a group without judgements is refused, or the judges of one with judgements are others")
	}
}
