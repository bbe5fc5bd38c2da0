// Package fenced reads the code and the tests in a response of a model.
package fenced

import (
	"regexp"
	"strings"
)

// Block is one ``` block of a response.
type Block struct {
	Language string // the info string's first word, lower case
	Text     string // the lines between the fences
}

// Blocks returns the ``` blocks of a response in order. A block without an
// end, as in a response cut at the token limit, ends with the response.
func Blocks(text string) []Block {
	var blocks []Block
	var body strings.Builder
	open := false
	language := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(trimmed, "```"):
			if open {
				body.WriteString(line)
			}
		case open:
			blocks = append(blocks, Block{language, body.String()})
			body.Reset()
			open = false
		default:
			open = true
			language = ""
			if f := strings.Fields(strings.TrimLeft(trimmed, "`")); len(f) > 0 {
				language = strings.ToLower(f[0])
			}
		}
	}
	if open {
		blocks = append(blocks, Block{language, body.String()})
	}
	return blocks
}

// Code returns the answer in a response of the Code LLM: the first
// ```python block, else the first fenced block, else the whole response.
func Code(response string) string {
	blocks := Blocks(response)
	for _, b := range blocks {
		if b.Language == "python" {
			return b.Text
		}
	}
	if len(blocks) > 0 {
		return blocks[0].Text
	}
	return response
}

var (
	testBegin  = regexp.MustCompile(`(?m)^def test`)
	asserted   = regexp.MustCompile(`(?m)^[ \t]*assert\b`)
	statement  = regexp.MustCompile(`(?m)^[^\s#)\]}]`)
	definition = regexp.MustCompile(`^def ([A-Za-z_][A-Za-z_0-9]*)\(.*\n([ \t]*)`)
)

// FirstTest returns the test in a response that was asked for one: the code up to the
// end of the first assert statement, without what comes before a function whose name begins
// with test. If the assertion is in a function, call calls it. The test is empty if there is
// no assertion, or if it is a statement neither of the module nor of a function's own body
// and so may not run.
func FirstTest(response string) (test, call string) {
	if i := strings.LastIndex(response, "</think>"); i >= 0 {
		response = response[i+len("</think>"):]
	}
	code := Code(response)
	if begin := testBegin.FindStringIndex(code); begin != nil {
		code = code[begin[0]:]
	}
	first := asserted.FindStringIndex(code)
	if first == nil {
		return "", ""
	}
	indent := strings.TrimSuffix(code[first[0]:first[1]], "assert")
	test = code[:first[1]] + logicalLine(code[first[1]:]) + "\n"
	if indent == "" {
		return test, ""
	}
	at := 0 // of the last statement of the module
	for _, line := range statement.FindAllStringIndex(test, -1) {
		at = line[0]
	}
	function := definition.FindStringSubmatch(test[at:])
	if function == nil || function[2] != indent {
		return "", ""
	}
	return test, function[1] + "()\ndel " + function[1] + "\n"
}

// logicalLine returns the begin of a Python text up to the line feed that ends its
// statement: one outside of brackets and texts.
func logicalLine(code string) string {
	open, quote := 0, ""
	for i := 0; i < len(code); i++ {
		rest := code[i:]
		switch {
		case code[i] == '\\':
			i++
		case quote != "":
			if strings.HasPrefix(rest, quote) {
				i += len(quote) - 1
				quote = ""
			} else if code[i] == '\n' && len(quote) == 1 {
				return code[:i] // no text ends here: the statement is wrong
			}
		case code[i] == '"' || code[i] == '\'':
			if quote = rest[:1]; strings.HasPrefix(rest, quote+quote+quote) {
				quote = rest[:3]
			}
			i += len(quote) - 1
		case code[i] == '#':
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				return code
			}
			i += end - 1
		case strings.IndexByte("([{", code[i]) >= 0:
			open++
		case strings.IndexByte(")]}", code[i]) >= 0:
			open--
		case code[i] == '\n' && open <= 0:
			return code[:i]
		}
	}
	return code
}
