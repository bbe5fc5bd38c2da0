package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"codea1/events"
)

// Group is a group as the page shows it: from its problem to what was trained.
// Texts are cut at the bounds in groups.go.
type Group struct {
	Name        string           `json:"group"`
	Purpose     events.Purpose   `json:"purpose"`
	Step        int              `json:"step"`
	Slot        int              `json:"slot"`
	Problem     string           `json:"problem"`
	Question    string           `json:"question"`
	EntryPoint  string           `json:"entry"`
	Solution    string           `json:"solution"`
	Temperature number           `json:"temperature"`
	CodeVersion int              `json:"code_version"`
	TestVersion int              `json:"test_version"`
	WithoutTest bool             `json:"without_test"` // the run has no Test LLM
	Predicts    bool             `json:"predicts"`     // golden has the questions of a predict problem
	Judge       string           `json:"judge"`        // names and versions of the programs and models that judged
	Historical  []historicalTest `json:"historical"`
	Golden      []string         `json:"golden"`
	Answers     []groupAnswer    `json:"answers"`
	Recipe      string           `json:"recipe"`
	Alpha       number           `json:"alpha"`
	TopVar      int              `json:"top_var"` // the answer whose suites the Test LLM learns from; -1 for none
	Deltas      []groupDelta     `json:"deltas"`
	Dropped     *Drop            `json:"dropped"`
	Updates     []groupUpdate    `json:"updates"` // versions that were trained on it
	Events      []groupEvent     `json:"events"`
}

type historicalTest struct {
	Call     string `json:"call"`
	Expected string `json:"expected"`
	Count    int    `json:"count"`
}

// groupAnswer is one answer with its suites.
type groupAnswer struct {
	Code      string           `json:"code"`
	Response  string           `json:"response"` // if it has more than the code
	Finish    string           `json:"finish"`
	Tokens    int              `json:"tokens"`
	Loads     bool             `json:"loads"`
	LoadError string           `json:"load_error"`
	Failure   string           `json:"failure"`
	Masked    bool             `json:"masked"`
	Reward    *number          `json:"reward"`
	Advantage *number          `json:"advantage"`
	Hist      []events.Verdict `json:"hist"`
	Golden    []goldenVerdict  `json:"golden"`
	Judged    []string         `json:"judged"` // a line for each statement of a judge
	Suites    []groupSuite     `json:"suites"`
}

type goldenVerdict struct {
	Verdict events.Verdict `json:"verdict"`
	Detail  string         `json:"detail"`
}

// groupSuite is one suite with its tests and the terms of its reward.
type groupSuite struct {
	Response string      `json:"response"`
	Finish   string      `json:"finish"`
	Tokens   int         `json:"tokens"`
	Failure  string      `json:"failure"`
	Tests    []groupTest `json:"tests"`
	Reward   *suiteTerms `json:"reward"`
}

type groupTest struct {
	Source   string            `json:"src"`
	Status   events.TestStatus `json:"status"`
	Stated   string            `json:"stated"`
	Expected string            `json:"expected"`
	Wrong    bool              `json:"wrong"`
	Verdict  events.Verdict    `json:"verdict"`
	Detail   string            `json:"detail"`
}

type suiteTerms struct {
	Reward    number `json:"reward"`
	Advantage number `json:"advantage"`
	Validity  number `json:"validity"`
	Adversary number `json:"adversarial"`
	Penalty   number `json:"penalty"`
	Pass      number `json:"pass"`
	PassNew   number `json:"pass_new"`
	FailNew   number `json:"fail_new"`
	PassHist  number `json:"pass_hist"`
	FailHist  number `json:"fail_hist"`
	Kept      int    `json:"kept"`
	Invalid   int    `json:"invalid"` // wrong as stated or discarded
	Masked    bool   `json:"masked"`
}

type groupDelta struct {
	Call     string `json:"call"`
	Expected string `json:"expected"`
	Change   int    `json:"change"`
}

type groupUpdate struct {
	Role    events.Role `json:"role"`
	Version int         `json:"version"`
	Step    int         `json:"step"`
	Groups  int         `json:"groups"`
}

type groupEvent struct {
	Type   events.Type `json:"type"`
	At     time.Time   `json:"at"`
	Source string      `json:"source"`
}

// groupReader builds a Group from events.
type groupReader struct {
	Group
	models  events.Models
	texts   textBudget
	skipped map[events.Role]bool // roles with an update of the step without the group
	scored  bool
}

func newGroupReader(name string, models events.Models) *groupReader {
	return &groupReader{
		models: models,
		Group: Group{
			Name: name, WithoutTest: models.WithoutTest(), TopVar: -1, Historical: []historicalTest{}, Golden: []string{}, Answers: []groupAnswer{}, Deltas: []groupDelta{},
			Updates: []groupUpdate{}, Events: []groupEvent{},
		},
		texts: textBudget{maxGroupBytes}, skipped: map[events.Role]bool{},
	}
}

// done reports whether no event that the page shows can follow.
func (g *groupReader) done() bool {
	if g.scored || g.Dropped != nil {
		return true
	}
	return g.Recipe != "" && len(g.Updates)+len(g.skipped) >= len(g.models.TrainedRoles())
}

func (g *groupReader) apply(e *events.Event) {
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		g.models, g.WithoutTest = p.Models, p.Models.WithoutTest()
		return
	case *events.PolicyUpdated:
		switch {
		case slices.Contains(p.Groups, g.Name):
			g.Updates = append(g.Updates, groupUpdate{p.Role, p.Version, p.Step, len(p.Groups)})
		case p.Step == g.Step && g.Step > 0:
			g.skipped[p.Role] = true
		}
		return
	case *events.ProblemPosed:
		g.posed(p)
	case *events.CodeSampled:
		g.posed(&p.Posed)
		g.CodeVersion = p.Version
		g.grow(len(p.Answers))
		codes := p.Codes()
		for m := range p.Answers {
			a, c := &g.Answers[m], &p.Answers[m]
			a.Code, a.Finish, a.Tokens = g.texts.cut(codes[m]), c.Finish, len(c.Tokens)
			if len(c.Text) > len(codes[m])+len("```python\n\n```\n") {
				a.Response = g.texts.cut(c.Text)
			}
		}
	case *events.TestsSampled:
		g.posed(&p.Posed)
		g.TestVersion = p.Version
		g.grow(len(p.Codes))
		for m := range p.Codes {
			a := &g.Answers[m]
			if a.Code == "" {
				a.Code = g.texts.cut(p.Codes[m])
			}
			a.grow(len(p.Suites[m]))
			for n := range p.Suites[m] {
				c := &p.Suites[m][n]
				a.Suites[n].Response, a.Suites[n].Finish, a.Suites[n].Tokens = g.texts.cut(c.Text), c.Finish, len(c.Tokens)
			}
		}
	case *events.CodeExecuted:
		g.executed(p)
	case *events.GroupRewarded:
		g.rewarded(p)
	case *events.EvalScored:
		g.scored = true
	case *events.GroupDropped:
		g.Dropped = &Drop{At: e.Time, Group: e.Group, Stage: p.Stage, Reason: p.Reason, Detail: brief(p.Detail)}
	}
	g.Events = append(g.Events, groupEvent{e.Type, e.Time, e.Source})
}

func (g *groupReader) posed(p *events.ProblemPosed) {
	if g.Problem != "" {
		return
	}
	plan := &p.Plan
	g.Purpose, g.Step, g.Slot, g.Temperature = plan.Purpose, plan.Step, plan.Slot, number(plan.Temperature)
	g.Problem, g.EntryPoint = p.Problem.ID, brief(p.Problem.EntryPoint)
	g.Question, g.Solution = g.texts.cut(p.Problem.Question), g.texts.cut(p.Problem.Solution)
	for i := range p.Historical {
		h := &p.Historical[i]
		g.Historical = append(g.Historical, historicalTest{g.texts.cut(h.Call), g.texts.cut(h.Expected), h.Count})
	}
	for _, golden := range p.Problem.Golden {
		g.Golden = append(g.Golden, g.texts.cut(golden))
	}
	g.Predicts = len(p.Problem.Predict) > 0
	for _, line := range p.Problem.Predict {
		g.Golden = append(g.Golden, g.texts.cut(string(line.Kind)+" "+strings.Join(line.Accepted, " or ")))
	}
}

func (g *groupReader) grow(answers int) {
	for len(g.Answers) < answers {
		g.Answers = append(g.Answers, groupAnswer{Hist: []events.Verdict{}, Golden: []goldenVerdict{}, Judged: []string{}, Suites: []groupSuite{}})
	}
}

func (a *groupAnswer) grow(suites int) {
	for len(a.Suites) < suites {
		a.Suites = append(a.Suites, groupSuite{Tests: []groupTest{}})
	}
}

func (g *groupReader) executed(p *events.CodeExecuted) {
	g.grow(len(p.Answers))
	if p.Judged != nil {
		g.Judge = brief(p.Judged.Engine)
	}
	for m := range p.Answers {
		from, a := &p.Answers[m], &g.Answers[m]
		for _, line := range statements(p.Judged, m) {
			a.Judged = append(a.Judged, brief(line))
		}
		a.Loads, a.LoadError, a.Failure = from.Loads, brief(from.LoadError), brief(from.Failure)
		a.Hist = append(a.Hist, from.Historical...)
		for _, v := range from.Golden {
			a.Golden = append(a.Golden, goldenVerdict{v.Verdict, g.texts.cut(v.Detail)})
		}
		a.grow(len(from.Suites))
		for n := range from.Suites {
			suite := &a.Suites[n]
			suite.Failure = brief(from.Suites[n].Failure)
			for i := range from.Suites[n].Tests {
				t := &from.Suites[n].Tests[i]
				suite.Tests = append(suite.Tests, groupTest{
					Source: g.texts.cut(t.Source), Status: t.Status, Stated: g.texts.cut(t.Stated), Expected: g.texts.cut(t.Expected),
					Wrong: t.Wrong, Verdict: t.Verdict, Detail: g.texts.cut(t.Detail),
				})
			}
		}
	}
}

// statements returns the judgements about an answer as text.
func statements(judged *events.Judged, answer int) (lines []string) {
	if judged == nil || answer >= len(judged.Answers) {
		return nil
	}
	j := &judged.Answers[answer]
	for _, f := range j.Failures {
		lines = append(lines, fmt.Sprintf("not judged (%s): %s", f.Judge, f.Reason))
	}
	if judged.Has(events.JudgeFindings) && j.Failure(events.JudgeFindings) == "" && len(j.Findings) == 0 {
		lines = append(lines, "no findings")
	}
	for _, f := range j.Findings {
		lines = append(lines, fmt.Sprintf("%s in line %d: severity %s, confidence %s", f.ID, f.Line, f.Severity, f.Confidence))
	}
	if judged.Has(events.JudgeScore) && j.Failure(events.JudgeScore) == "" {
		if j.Parses {
			lines = append(lines, fmt.Sprintf("score %.4g", j.Score))
		} else {
			lines = append(lines, "no score: the response is not one code block of Python")
		}
	}
	if judged.Has(events.JudgeVerdict) && j.Failure(events.JudgeVerdict) == "" {
		if j.Safe {
			lines = append(lines, "not vulnerable")
		} else {
			lines = append(lines, "vulnerable")
		}
	}
	return lines
}

func (g *groupReader) rewarded(p *events.GroupRewarded) {
	g.Step, g.Recipe, g.Alpha, g.TopVar = p.Plan.Step, p.Recipe, number(p.Alpha), p.TopVar
	g.grow(len(p.Code))
	for m := range p.Code {
		a := &g.Answers[m]
		reward, advantage := number(p.Code[m].Reward), number(p.Code[m].Advantage)
		a.Reward, a.Advantage, a.Masked = &reward, &advantage, p.Code[m].Masked
		a.grow(len(p.Test[m]))
		for n := range p.Test[m] {
			s := &p.Test[m][n]
			a.Suites[n].Reward = &suiteTerms{
				Reward: number(s.Reward), Advantage: number(s.Advantage), Validity: number(s.RVal), Adversary: number(s.RAdv),
				Penalty: number(s.Penalty), Pass: number(s.Pass), PassNew: number(s.PassNew), FailNew: number(s.FailNew),
				PassHist: number(s.PassHist), FailHist: number(s.FailHist), Kept: s.Valid, Invalid: s.Invalid, Masked: s.Masked,
			}
		}
	}
	for _, d := range p.Deltas {
		g.Deltas = append(g.Deltas, groupDelta{g.texts.cut(d.Call), g.texts.cut(d.Expected), d.Change})
	}
}
