package published

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"codea1/consumers/execution"
	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// bigCode is a row of BigCodeBench. Its test is a unittest class, which runs in the
// answer's process. A solution follows the imports and the header of the function
// (code_prompt), as in BigCodeBench's calibrated evaluation, so that an answer without
// the imports counts. A completion follows complete_prompt.
type bigCode struct {
	TaskID    string `json:"task_id"`
	Prompt    string `json:"complete_prompt"`
	Instruct  string `json:"instruct_prompt"`
	Header    string `json:"code_prompt"`
	Canonical string `json:"canonical_solution"` // the function's body
	Test      string `json:"test"`
	Libs      string `json:"libs"` // Python's text of a list of modules

	needs []string
	plan  *execution.GoldenPlan // nil until an answer needs it; one task is graded by one goroutine
}

func readBigCode(line []byte) ([]Task, error) {
	t := new(bigCode)
	if err := json.Unmarshal(line, t); err != nil {
		return nil, fmt.Errorf("BigCodeBench: %w", err)
	}
	err := missing(t.TaskID, "task_id", t.TaskID, "complete_prompt", t.Prompt, "code_prompt", t.Header,
		"canonical_solution", t.Canonical, "test", t.Test, "libs", t.Libs)
	if err != nil {
		return nil, fmt.Errorf("BigCodeBench: %w", err)
	}
	list, _ := literal.Parse(t.Libs)
	names, ok := list.(literal.List)
	for _, name := range names {
		text, isText := name.(literal.Str)
		ok = ok && isText
		t.needs = append(t.needs, string(text))
	}
	if !ok {
		return nil, fmt.Errorf("BigCodeBench: problem %q: field libs is no list of modules: %.60s", t.TaskID, t.Libs)
	}
	for _, name := range append(imported(t.Header), imported(t.Test)...) {
		if !slices.Contains(t.needs, name) {
			t.needs = append(t.needs, name)
		}
	}
	return []Task{t}, nil
}

var importStatement = regexp.MustCompile(`(?m)^[ \t]*(?:from[ \t]+(\w+)[\w.]*[ \t]+import\b|import[ \t]+([^\n#;]+))`)

// imported returns the modules that a text imports. The published libs do not have
// all that the tests import.
func imported(text string) (modules []string) {
	for _, m := range importStatement.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			modules = append(modules, m[1])
			continue
		}
		for one := range strings.SplitSeq(m[2], ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(one), " ")
			name, _, _ = strings.Cut(name, ".")
			modules = append(modules, name)
		}
	}
	return modules
}

// bigCodeNames are the names that BigCodeBench gives every program.
const bigCodeNames = "import os, sys\nfrom os import environ\n"

// oneModule ends a test. BigCodeBench runs an answer and its test as one module, so that
// functions of the answer see what the test imports and defines, also over names of their
// own.
const oneModule = "\n__import__('solution').__dict__.update(globals())\n"

func (t *bigCode) ID() string        { return t.TaskID }
func (t *bigCode) modules() []string { return t.needs }
func (t *bigCode) Truth() string     { return t.Prompt + "\n" + t.Canonical }

func (t *bigCode) Program(text string, completion bool) string {
	if completion {
		return t.Prompt + text
	}
	return t.Header + "\n    pass\n" + text
}

// grade runs the test on the answer. The limits follow from the ground truth's time.
func (t *bigCode) grade(ctx context.Context, g *Grader, answer string) (Verdict, error) {
	if t.plan == nil {
		// Without an entry point, a script runs in the process of the program: the tests
		// replace parts of it.
		plan, err := g.x.PlanGolden(ctx, sandbox.Program{Code: bigCodeNames + t.Truth()}, []string{t.Test + oneModule}, 0)
		if err != nil {
			return Verdict{}, err
		}
		t.plan = plan
	}
	report, verdicts, err := g.x.GradeWithReport(ctx, sandbox.Program{Code: bigCodeNames + answer}, t.plan)
	if err != nil {
		return Verdict{}, err
	}
	grade := &grading.Grade{Loads: report.Loads, LoadError: report.LoadError, Verdicts: verdicts}
	v := Verdict{
		Passed:    report.Loads && verdicts[0].Verdict == events.VerdictPass,
		Behaviour: grading.Behaviour(report.Loads, verdicts), Reason: grade.FirstReason(),
	}
	if refused := t.refused(); !v.Passed && refused != "" {
		v.Reason += " (" + refused + ")"
	}
	return v, nil
}

// refusals are the modules and functions that need what an isolated sandbox refuses.
var refusals = []struct{ names, why string }{
	{`subprocess|multiprocessing|os\.(?:system|popen|fork|exec\w+|spawn\w+)`, "starts no other program"},
	{`socket|ssl|ftplib|smtplib|urllib\.request|requests|http\.client|mechanize`, "has no network"},
}

// refused names what the task uses and an isolated sandbox refuses; empty for nothing.
// Such a task may pass: many tests replace these parts.
func (t *bigCode) refused() string {
	var all []string
	for _, r := range refusals {
		if found := regexp.MustCompile(`\b(?:` + r.names + `)\b`).FindString(t.Truth() + "\n" + t.Test); found != "" {
			all = append(all, fmt.Sprintf("the task uses %s: an isolated sandbox %s", found, r.why))
		}
	}
	return strings.Join(all, "; ")
}
