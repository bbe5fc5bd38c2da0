package problems

import (
	"regexp"
	"strings"
	"unicode"
)

// kodCodeProblem reads a row of KodCode-V1 as published. Its test is a pytest
// file; each of its test functions becomes a stand-alone script.
func kodCodeProblem(r *record) (Problem, error) {
	p := Problem{
		ID: r.required("question_id"), Source: "KodCode-V1", Difficulty: r.optional("gpt_difficulty"),
		Question: r.required("question"), Solution: r.required("solution"), EntryPoint: r.required("test_info.function_name"),
		StarterCode: r.optional("test_info.function_declaration"),
	}
	if subset := r.optional("subset"); subset != "" {
		p.Source += "/" + subset
	}
	test := r.required("test")
	if r.err != nil {
		return p, r.err
	}
	if p.Tests = pytestScripts(test); len(p.Tests) == 0 {
		return p, &FieldError{"test", "has no test function that the sandbox can run"}
	}
	return p, nil
}

var (
	definition     = regexp.MustCompile(`^(?:async )?(?:def|class) +(\w+)`)
	decorated      = regexp.MustCompile(`^(@(?s:.*?)\n)(?:async )?(?:def|class) `)
	testFunction   = regexp.MustCompile(`^def +(test\w*) *\(([^()]*)\) *(?:->[^:]*)?:`)
	solutionImport = regexp.MustCompile(`^(?:from +solution +import|import +solution\b|import +pytest\b|from +pytest +import)`)
	pytestUse      = regexp.MustCompile(`\bpytest\b`)
	// sandboxPytest is the use of pytest that the sandbox's own module allows without fixtures.
	sandboxPytest = regexp.MustCompile(`\bpytest\.(?:mark\.parametrize|param|raises|approx)\b`)
)

// pytestScripts splits a pytest file into one script for each test function: the
// rest of the file, the function and its call. It leaves out imports of the
// solution, because the candidate is in scope, and all other code that needs
// pytest. The sandbox runs a function that needs only sandboxPytest, once for
// each case; its script has no call. Functions with fixtures are left out.
func pytestScripts(file string) []string {
	var shared strings.Builder
	type test struct{ text, end string }
	var tests []test
	for _, block := range topLevelBlocks(file) {
		decorators, head := "", block
		if match := decorated.FindStringSubmatch(block); match != nil {
			decorators, head = match[1], block[len(match[1]):]
		}
		needsPytest := pytestUse.MatchString(block)
		match := testFunction.FindStringSubmatch(head)
		switch {
		case match != nil && !needsPytest && strings.TrimSpace(match[2]) == "":
			tests = append(tests, test{block, "\n\n" + match[1] + "()\n"})
		case match != nil && needsPytest && runsInSandbox(block, decorators, match[2]):
			tests = append(tests, test{"import pytest\n\n" + block, "\n"})
		case !strings.HasPrefix(head, "def test") && !needsPytest && !solutionImport.MatchString(block):
			shared.WriteString(block)
		}
	}
	var scripts []string
	for _, t := range tests {
		scripts = append(scripts, strings.TrimLeft(shared.String(), "\n")+strings.TrimRight(t.text, "\n")+t.end)
	}
	return scripts
}

// runsInSandbox reports whether a test function uses no part of pytest but
// sandboxPytest and has no parameters but those that its decorators set.
func runsInSandbox(function, decorators, parameters string) bool {
	if pytestUse.MatchString(sandboxPytest.ReplaceAllString(function, "")) {
		return false
	}
	for name := range strings.FieldsFuncSeq(parameters, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		if !regexp.MustCompile(`["',\s]` + regexp.QuoteMeta(name) + `["',\s]`).MatchString(decorators) {
			return false
		}
	}
	return true
}

// topLevelBlocks splits a module before each line that starts a statement at
// the left margin. A decorator stays with its function, and a line inside
// brackets or a triple-quoted string with its statement.
func topLevelBlocks(module string) []string {
	var blocks []string
	var open openText
	decorated := false
	for line := range strings.Lines(module) {
		starts := open.closed() && line[0] != ' ' && line[0] != '\t' && line[0] != '\n' && line[0] != '\r' && line[0] != ')' && line[0] != ']'
		if len(blocks) == 0 || starts && !decorated {
			blocks = append(blocks, line)
		} else {
			blocks[len(blocks)-1] += line
		}
		if starts {
			decorated = line[0] == '@'
		}
		open.read(line)
	}
	return blocks
}

// openText tracks, line by line, whether Python text is inside brackets or a
// triple-quoted string.
type openText struct {
	brackets int
	quote    string // the closing triple quote, or ""
}

func (o *openText) closed() bool { return o.brackets == 0 && o.quote == "" }

func (o *openText) read(line string) {
	for i := 0; i < len(line); {
		rest := line[i:]
		switch {
		case o.quote != "":
			if strings.HasPrefix(rest, o.quote) {
				i += len(o.quote)
				o.quote = ""
				continue
			}
			if rest[0] == '\\' {
				i++
			}
		case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, `'''`):
			o.quote = rest[:3]
			i += 3
			continue
		case rest[0] == '"' || rest[0] == '\'':
			i += quotedLength(rest)
			continue
		case rest[0] == '#':
			return
		case strings.ContainsRune("([{", rune(rest[0])):
			o.brackets++
		case strings.ContainsRune(")]}", rune(rest[0])):
			o.brackets = max(o.brackets-1, 0)
		}
		i++
	}
}

// quotedLength is the length of the string literal at the start of text, or of
// the whole text when it is not closed.
func quotedLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return len(text)
}

// calledFunction returns the top-level function of the solution that the tests
// call. If they call several, it is the last one defined.
func calledFunction(solution string, tests []string) string {
	called := ""
	for line := range strings.Lines(solution) {
		match := definition.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		call := regexp.MustCompile(`\b` + match[1] + ` *\(`)
		for _, test := range tests {
			if call.MatchString(test) {
				called = match[1]
				break
			}
		}
	}
	return called
}
