package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/dashboard"
	"codea1/events"
)

// recordOf returns the record of a run with an evaluation before training and one
// after it. Each has a text per problem: 1 for a correct answer. right is the number
// of tests that are right as stated, of 10; -1 for a run without a Test LLM.
func recordOf(ended bool, before, after []string, right int) *Record {
	s := dashboard.NewState()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	apply := func(group string, payload events.Payload) {
		at = at.Add(time.Second)
		s.Apply(events.New("r", group, "test-0", at, payload))
	}
	apply("start-0001", &events.RunStarted{Attempt: 1, Steps: 4, Models: events.ModelsCode})
	for i, problems := range [][]string{before, after} {
		step := 4 * i
		if step > 0 {
			apply("v", &events.PolicyUpdated{Role: events.RoleCode, Version: step, Step: step})
		}
		for slot, text := range problems {
			e := &events.EvalScored{Plan: events.Plan{Purpose: events.PurposeEval, Tag: fmt.Sprint(step), Step: step, Slot: slot, Groups: len(problems)}, ProblemID: fmt.Sprint("h", slot)}
			for _, r := range text {
				e.Correct = append(e.Correct, r == '1')
			}
			if right >= 0 && slot == 0 {
				e.Stated, e.Right, e.Suites, e.Wanted = 10, right/(2-i), 1, 10
			}
			apply("e", e)
		}
	}
	if ended {
		apply("end-0001", &events.RunFinished{Attempt: 1, Steps: 4, Reason: events.RunCompleted})
	}
	return &Record{State: s, Tokens: 1234, Elapsed: 5 * time.Second}
}

func results(t *testing.T) *Results {
	t.Helper()
	m, err := parse("first.yaml", []byte("seeds: [1, 2]\nbaseline: golden\narms:\n  golden: {preset: golden}\n  a: {alpha: 0}\n  open:\n"))
	if err != nil {
		t.Fatal(err)
	}
	var runs []*Run
	for _, seed := range m.Seeds {
		for i := range m.Arms {
			runs = append(runs, &Run{Arm: &m.Arms[i], Seed: seed, Name: runName(m.Arms[i].Name, seed)})
		}
	}
	start := []string{"1000", "0000"}
	return newResults(m, runs, []*Record{
		recordOf(true, start, []string{"1100", "1000"}, -1), recordOf(true, start, []string{"1110", "1100"}, 4), recordOf(false, start, nil, -1),
		recordOf(true, start, []string{"1100", "1100"}, -1), recordOf(true, start, []string{"1110", "1110"}, 6), nil,
	}, nil)
}

func TestResults(t *testing.T) {
	r := results(t)
	// avg@4 of golden is (2+1+2+2)/16, that of a one quarter more in each pair. An
	// answer of each problem is correct. The models before training have 1/8.
	want := `Experiment first: 4 of 6 runs completed; seeds 1, 2; 2 held-out problems

CODE LLM
configuration    runs  avg@4 (95% interval)  minus golden (95% interval)    pass@4 (95% interval)    rollout tokens per run
before training        12.5% (0.0 - 25.0%)   -31.2 points (-50.0 to -25.0)  50.0% (50.0 - 50.0%)
golden           2     43.8% (25.0 - 50.0%)                                 100.0% (100.0 - 100.0%)  1,234
a                2     68.8% (50.0 - 75.0%)  +25.0 points (+25.0 to +25.0)  100.0% (100.0 - 100.0%)  1,234

Intervals of avg@k resample seeds and problems, the others seeds; one seed gives none over seeds. Differences are paired by seed and problem.

TEST LLM
configuration    runs  validity (95% interval)  defect-finding (95% interval)  reach (95% interval)  trivial inputs (95% interval)  rollout tokens per run
before training        25.0% (20.0 - 30.0%)     -                              -                     -
a                2     50.0% (40.0 - 60.0%)     -                              -                     -                              1,234
`
	if diff := cmp.Diff(want, r.Text()); diff != "" {
		t.Errorf("-want +have:\n%s", diff)
	}
}

func TestResultsAsJSON(t *testing.T) {
	line, err := json.Marshal(results(t))
	if err != nil {
		t.Fatal(err)
	}
	var back Results
	if err := json.Unmarshal(line, &back); err != nil {
		t.Fatal(err)
	}
	a := back.Arms[2]
	if a.Name != "a" || a.Settings["alpha"] != "0" || len(a.Runs) != 2 || a.Runs[1].Figures["validity"] != 0.6 || a.Runs[0].Seconds != 5 {
		t.Errorf("%+v", a)
	}
	if f := a.Figures["avg"]; f.Value != 0.6875 || f.Difference == nil || f.Difference.Value != 0.25 || *f.Difference.Low != 0.25 {
		t.Errorf("%+v", f)
	}
	if f := back.Arms[1].Figures["avg"]; f.Difference != nil {
		t.Error("the baseline differs from itself")
	}
	if open := back.Arms[3]; len(open.Figures) != 0 || len(open.Runs) != 0 {
		t.Errorf("%+v of runs that are not completed", open)
	}
}

// Settings of a user become no HTML and no Markdown.
func TestPageEscapes(t *testing.T) {
	const evil = `</script><img src=x onerror="evil()">|*_` + "\nx"
	r := results(t)
	r.matrix.Name, r.Name = evil, evil
	r.matrix.Arms[0].Settings = []Setting{{Key: "code-prompt", Value: evil}}
	var page bytes.Buffer
	if err := dashboard.WriteOverlay(&page, r.page()); err != nil {
		t.Fatal(err)
	}
	r.About = "About *this*."
	if text := r.Markdown(); !strings.Contains(text, "\n\nAbout *this*.\n\n## ") || !strings.Contains(text, "| golden | golden | code-prompt: &lt;/script>&lt;img src=x onerror=\"evil()\">\\|\\*\\_ x |\n") || strings.Contains(text, "<img") {
		t.Errorf("a setting is not escaped:\n%s", text)
	}
	if strings.Contains(page.String(), "<img") || !strings.Contains(page.String(), "code-prompt: &lt;/script&gt;") {
		t.Error("a setting is not escaped")
	}
}

// The figures of an evaluation are means over the runs that have it, which the table
// counts. Those before training are a row of their own.
func TestEvaluationTables(t *testing.T) {
	r := results(t)
	r.matrix.Evaluations = []Evaluation{
		{Name: "mul", Benchmark: "b.jsonl", Settings: []Setting{{Key: "tests", Value: "3"}, {Key: "role", Value: "test"}}}, {Name: "none", Benchmark: "b.jsonl"},
	}
	runs := []RunResult{
		{Seed: 1, Evaluations: []Evaluated{{Name: "mul", Before: []Value{{"Mul", 0.125}}, After: []Value{{"pass@3", 0.25}, {"Mul", 0.5}}}}},
		{Seed: 2, Evaluations: []Evaluated{{Name: "mul", After: []Value{{"pass@3", 0.75}, {"Mul", 0.5}, {"lines", 1}}}}},
		{Seed: 3},
	}
	r.matrix.Seeds = []uint64{1, 2, 3}
	r.Arms = []ArmResult{{Name: "first", Evaluations: r.matrix.evaluated(runs, true)}, {Name: "a", Evaluations: r.matrix.evaluated(runs, false)}, {Name: "open"}}
	tables := r.tables()
	want := []dashboard.OverlayTable{{
		Caption: "Evaluation mul: b.jsonl, role test, tests 3",
		Head:    []string{"configuration", "runs", "Mul (95% interval)", "pass@3 (95% interval)", "lines (95% interval)"},
		Rows: [][]string{
			{"first", "1", "12.5%", "-", "-"},
			{"a", "2", "50.0% (50.0 - 50.0%)", "50.0% (25.0 - 75.0%)", "100.0%"},
		},
	}}
	if diff := cmp.Diff(want, tables); diff != "" {
		t.Errorf("-want +have:\n%s", diff)
	}
}

// codea1 eval prints a line for each suite of tests.
func TestFiguresOfAnEvaluation(t *testing.T) {
	for text, want := range map[string]string{
		`{"k":5,"suites":4,"pass":40,"perfect":1,"mut":50,"mul":20,"branch":10,"measured":2}`:                                            "[{pass@5 0.4} {mut@5 0.5} {Mul 0.2} {suites that pass whole 0.25} {branches 0.1}]",
		`{"tests":"all","answers":8,"avg":0.25,"pass":[{"k":1,"value":0.25},{"k":8,"value":0.5}],"majority":0.75,"chosen":0}`:            "[{avg@8 0.25} {majority 0.75} {chosen 0} {pass@8 0.5}]",
		`{"tests":"base","answers":1,"avg":1,"majority":1}` + "\n" + `{"tests":"base+plus","answers":1,"avg":0.5,"majority":0.5}` + "\n": "[{base avg@1 1} {base majority 1} {base+plus avg@1 0.5} {base+plus majority 0.5}]",
	} {
		if have, err := values([]byte(text)); err != nil || fmt.Sprint(have) != want {
			t.Errorf("%s: have %v, %v; want %s", text, have, err, want)
		}
	}
	for _, text := range []string{"", "no figures", "{"} {
		if have, err := values([]byte(text)); err == nil {
			t.Errorf("%q: have %v", text, have)
		}
	}
}
