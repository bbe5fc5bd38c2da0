package published

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"codea1/consumers/execution/evalplus"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

// liveCodeTime is LiveCodeBench's limit for one test.
const liveCodeTime = 6 * time.Second

// maxCasesBytes bounds the unpacked hidden tests of a problem.
const maxCasesBytes = 512 << 20

// liveCode is a row of LiveCodeBench's code generation. Its answer is a whole program
// with standard input and output, or a class Solution with a method.
type liveCode struct {
	id      string
	content string
	starter string // the begin of the program; empty: standard input and output
	method  string // likewise
	cases   []liveCase
	given   []string // the arguments of the calls, by case, in brackets
	wants   []literal.Value
}

// liveCase is a test of a problem. Input and output are texts of standard input and
// output, or JSON: an argument per line, and the value.
type liveCase struct {
	Input  string `json:"input"`
	Output string `json:"output"`
	Type   string `json:"testtype"`
}

func readLiveCode(line []byte) ([]Task, error) {
	var row struct {
		ID       string `json:"question_id"`
		Content  string `json:"question_content"`
		Starter  string `json:"starter_code"`
		Public   string `json:"public_test_cases"`
		Private  string `json:"private_test_cases"`
		Metadata string `json:"metadata"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, fmt.Errorf("LiveCodeBench: %w", err)
	}
	if err := missing(row.ID, "question_id", row.ID, "public_test_cases", row.Public); err != nil {
		return nil, fmt.Errorf("LiveCodeBench: %w", err)
	}
	t := &liveCode{id: row.ID, content: row.Content, starter: row.Starter}
	for _, field := range []struct{ name, text string }{{"public_test_cases", row.Public}, {"private_test_cases", row.Private}} {
		cases, err := readCases(field.text)
		if err != nil {
			return nil, fmt.Errorf("LiveCodeBench: problem %q: field %s: %w", row.ID, field.name, err)
		}
		t.cases = append(t.cases, cases...)
	}
	if len(t.cases) == 0 {
		return nil, fmt.Errorf("LiveCodeBench: problem %q has no tests", row.ID)
	}
	var about struct {
		Method string `json:"func_name"`
	}
	if row.Metadata != "" {
		if err := json.Unmarshal([]byte(row.Metadata), &about); err != nil {
			return nil, fmt.Errorf("LiveCodeBench: problem %q: field metadata: %w", row.ID, err)
		}
	}
	for i, c := range t.cases {
		if c.Type != t.cases[0].Type {
			return nil, fmt.Errorf("LiveCodeBench: problem %q: field testtype: both %q and %q", row.ID, t.cases[0].Type, c.Type)
		}
		switch {
		case c.Type == "stdin":
		case c.Type != "functional":
			return nil, fmt.Errorf("LiveCodeBench: problem %q: field testtype is %q, want stdin or functional", row.ID, c.Type)
		case !sandbox.IsArgumentName(about.Method):
			return nil, fmt.Errorf("LiveCodeBench: problem %q: field metadata: func_name is %q, want the name of a method", row.ID, about.Method)
		default:
			t.method = about.Method
			if err := t.addCall(c); err != nil {
				return nil, fmt.Errorf("LiveCodeBench: problem %q: test %d: %w", row.ID, i, err)
			}
		}
	}
	return []Task{t}, nil
}

// readCases reads tests: a JSON list, or base64 of a zlib stream of a pickled text that
// is one.
func readCases(text string) (cases []liveCase, err error) {
	if text == "" {
		return nil, nil
	}
	if json.Unmarshal([]byte(text), &cases) == nil {
		return cases, nil
	}
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("want a JSON list of tests, or base64: %w", err)
	}
	stream, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(io.LimitReader(stream, maxCasesBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(all) > maxCasesBytes:
		return nil, fmt.Errorf("more than %d bytes unpacked", maxCasesBytes)
	}
	list, err := unpickleText(all)
	if err != nil {
		return nil, err
	}
	return cases, json.Unmarshal(list, &cases)
}

// addCall adds the call of a functional test.
func (t *liveCode) addCall(c liveCase) error {
	read := func(text string) (literal.Value, error) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		return evalplus.ReadValue(d)
	}
	var arguments []string
	for line := range strings.SplitSeq(c.Input, "\n") {
		v, err := read(line)
		if err != nil {
			return fmt.Errorf("field input: %w", err)
		}
		arguments = append(arguments, literal.Text(v))
	}
	want, err := read(c.Output)
	if err != nil {
		return fmt.Errorf("field output: %w", err)
	}
	t.given = append(t.given, "("+strings.Join(arguments, ", ")+")")
	t.wants = append(t.wants, want)
	return nil
}

func (t *liveCode) ID() string                         { return t.id }
func (t *liveCode) Truth() string                      { return "" }
func (t *liveCode) modules() []string                  { return nil }
func (t *liveCode) Program(text string, _ bool) string { return text }

// livePrelude has the names that LiveCodeBench gives every answer.
var livePrelude = func() string {
	var b strings.Builder
	for name := range strings.FieldsSeq("string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json builtins typing") {
		fmt.Fprintf(&b, "from %s import *\nimport %s\n", name, name)
	}
	return b.String() + "sys.setrecursionlimit(50000)\n"
}()

// grade runs the tests up to the first that the answer fails.
func (t *liveCode) grade(ctx context.Context, g *Grader, answer string) (Verdict, error) {
	if t.method == "" {
		return t.gradeProgram(ctx, g, answer)
	}
	entry := t.method
	if strings.Contains(answer, "class Solution") { // as LiveCodeBench decides
		entry = "Solution()." + t.method
	}
	calls := make([]string, len(t.given))
	for i, given := range t.given {
		calls[i] = entry + given
	}
	report, err := g.pool.RunCalls(ctx, sandbox.Job{
		Code: livePrelude + answer, Entry: entry, Items: calls, StopAtTimeout: true,
		Each: g.each, Budget: g.each * time.Duration(len(calls)+1),
	})
	if err != nil {
		return Verdict{}, err
	}
	if !report.Loads {
		return failed(-1, "does not load: "+report.LoadError), nil
	}
	for i, o := range report.Outcomes {
		if reason := unreached(o); reason != "" {
			return failed(i, reason), nil
		}
		got := o.Value
		if tuple, ok := got.(literal.Tuple); ok { // as LiveCodeBench compares
			got = literal.List(tuple)
		}
		if !literal.Equal(got, t.wants[i]) {
			return failed(i, "it returned another value"), nil
		}
	}
	return passed, nil
}

// streamSlack is how much longer than the expected output an output may be. The rest is
// dropped, and the answer is wrong.
const streamSlack = 64 << 10

func (t *liveCode) gradeProgram(ctx context.Context, g *Grader, answer string) (Verdict, error) {
	for i, c := range t.cases {
		most := int64(len(c.Output) + streamSlack)
		end, err := g.pool.RunProgram(ctx, &sandbox.WholeProgram{
			Code: livePrelude + answer, Language: "python", Stdin: c.Input, Seconds: g.each.Seconds(), StreamBytes: most, FetchFiles: []string{},
		})
		switch {
		case err != nil:
			return Verdict{}, err
		case end.Overtime:
			return failed(i, fmt.Sprintf("no end after %v", g.each)), nil
		case end.ReturnCode == nil || *end.ReturnCode != 0:
			return failed(i, "it failed: "+strings.TrimSpace(end.Stderr[max(0, len(end.Stderr)-200):])), nil
		case int64(len(end.Stdout)) >= most:
			return failed(i, fmt.Sprintf("it wrote %d bytes or more", most)), nil
		case !sameOutput(end.Stdout, c.Output):
			return failed(i, "it wrote another output"), nil
		}
	}
	return passed, nil
}

var passed = Verdict{Passed: true, Behaviour: "passed"}

// failed is the verdict of an answer at the first test that it fails.
func failed(test int, reason string) Verdict {
	return Verdict{Behaviour: fmt.Sprintf("failed %d", test), Reason: fmt.Sprintf("test %d: %s", test, reason)}
}
