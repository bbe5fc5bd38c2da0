package published

import (
	"fmt"
	"strings"

	"codea1/events/fenced"
)

// A Question is the user's turn of a chat, or the text that a model continues. Its
// wording is that of the file where the file has one (BigCodeBench), and else ours, with
// the fields and the marks of the benchmark in their places. Answer reads a response as
// the benchmark's own evaluator does.

const (
	answerBegin = "[ANSWER]"
	answerEnd   = "[/ANSWER]"
)

// Question implements Task.
func (t *cruxEval) Question(bool) string {
	task, example := "Replace ?? in the assertion by a literal with which it holds.", "assert f([2, 5]) == 7"
	call := fmt.Sprintf("%s(%s) == ??", cruxEntry, t.input)
	shown := "f([2, 5]) == ??"
	if t.predictsInput {
		task = "Replace ?? in the assertion by arguments with which it holds. Any such arguments count."
		call, shown = fmt.Sprintf("%s(??) == %s", cruxEntry, t.output), "f(??) == 7"
	}
	const code = "def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total"
	row := func(code, call string) string {
		return fmt.Sprintf("[PYTHON]\n%s\nassert %s\n[/PYTHON]\n%s\n", strings.TrimSpace(code), call, answerBegin)
	}
	return fmt.Sprintf("%s Call no function besides %s. Write the whole assertion between %s and %s.\n\n%s%s\n%s\n\n%s",
		task, cruxEntry, answerBegin, answerEnd, row(code, shown), example, answerEnd, row(t.code, call))
}

// Answer implements Task.
func (t *cruxEval) Answer(response string, _ bool) string {
	if _, last, found := cutLast(response, answerBegin); found {
		response = last
	}
	response, _, _ = strings.Cut(response, answerEnd)
	call, value, isAssertion := strings.Cut(response, "==")
	if t.predictsInput {
		return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(call), "assert "))
	}
	if isAssertion {
		response = value
	}
	return strings.TrimSpace(response)
}

// cutLast is strings.Cut around the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(text, separator); at >= 0 {
		return text[:at], text[at+len(separator):], true
	}
	return text, "", false
}

const fence = "```"

// Question implements Task.
func (t *liveCode) Question(completion bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### Question\n%s\n\n### Format\n", strings.TrimSpace(t.content))
	if t.starter != "" {
		fmt.Fprintf(&b, "Write a Python program that begins with this code, in one block between %s marks.\n%spython\n%s\n%s\n", fence, fence, strings.TrimRight(t.starter, "\n"), fence)
	} else {
		fmt.Fprintf(&b, "Write a Python program that reads the input from standard input and writes the answer to standard output, in one block between %s marks.\n", fence)
	}
	b.WriteString("\n### Answer\n")
	if completion {
		b.WriteString(fence + "python\n")
	}
	return b.String()
}

// Answer implements Task: the last fenced block is the program.
func (t *liveCode) Answer(response string, completion bool) string {
	if completion {
		program, _, _ := strings.Cut(response, fence)
		return program
	}
	lines := strings.Split(response, "\n")
	var marks []int
	for i, line := range lines {
		if strings.Contains(line, fence) {
			marks = append(marks, i)
		}
	}
	if len(marks) < 2 {
		return ""
	}
	return strings.Join(lines[marks[len(marks)-2]+1:marks[len(marks)-1]], "\n")
}

// Question implements Task. A chat gets the instruction, if the file has it.
func (t *bigCode) Question(completion bool) string {
	switch {
	case completion:
		return t.Prompt
	case t.Instruct != "":
		return t.Instruct
	}
	return fmt.Sprintf("Complete this Python program. Write the whole program in one block between %s marks.\n%spython\n%s\n%s\n", fence, fence, strings.TrimSpace(t.Prompt), fence)
}

// bodyEnds are texts after the end of a function that a base model continues.
var bodyEnds = []string{"\nclass ", "\nimport ", "\nfrom ", "\nassert ", "\nprint(", "\nif __name__", "\ndef main(", "\n" + fence}

// Answer implements Task.
func (t *bigCode) Answer(response string, completion bool) string {
	if !completion {
		return fenced.Code(response)
	}
	for _, end := range bodyEnds {
		response, _, _ = strings.Cut(response, end)
	}
	return response
}
