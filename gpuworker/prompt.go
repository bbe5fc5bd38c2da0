package gpuworker

import (
	"fmt"
	"strings"

	"codea1/events"
)

// Style selects the wording of the prompts.
type Style string

const (
	// StylePlain is the question and, for the Test LLM, the program. The embedded
	// models are trained on it.
	StylePlain Style = "plain"
	// StylePaper has full instructions for an instruction-tuned model.
	StylePaper Style = "paper"
)

// Validate returns an error for an unknown style.
func (s Style) Validate() error {
	if s != StylePlain && s != StylePaper {
		return fmt.Errorf("prompt style %q is unknown, want %q or %q", string(s), StylePlain, StylePaper)
	}
	return nil
}

// CodePrompt returns the prompt that asks the Code LLM to solve a problem.
func CodePrompt(style Style, p *events.Problem) []Message {
	if style == StylePlain {
		return user(p.Question)
	}
	return user(fmt.Sprintf(`Solve the following problem in Python 3.

### Problem
%s

### What to hand in
- One complete program in a single fenced block that opens with `+"```python"+`. Only the first such block is run.
- It defines `+"`%s`"+`, which is called with the arguments the problem describes and returns the result.
- It imports what it uses from the standard library. It reads no input, prints nothing and holds no tests.

Reason step by step before the block if that helps you.`, strings.TrimSpace(p.Question), p.EntryPoint))
}

// TestPrompt returns the prompt that asks the Test LLM for k tests that code, an
// answer to the problem, fails.
func TestPrompt(style Style, p *events.Problem, code string, k int) []Message {
	code = "```python\n" + strings.TrimRight(code, "\n") + "\n```"
	if style == StylePlain {
		return user(p.Question + "\n" + code)
	}
	return user(fmt.Sprintf(`A program was written for the problem below. It may be wrong. Write tests that a correct program passes and that this one fails.

### Problem
%s

### Program under test
%s

### What to hand in
- Exactly %d tests in a single fenced block that opens with `+"```python"+`, one test per line and nothing else in the block.
- Each test reads `+"`assert %s(arguments) == value`"+`, where value is the Python literal that the problem statement demands, whatever the program under test returns.
- No two tests make the same call. A test whose value is not the right answer counts against you.

First look for inputs on which the program goes wrong: empty and single-element inputs, negative numbers, zero, duplicates, ties, boundaries, large values, unusual types. If you find none, test the hardest cases the problem allows.`,
		strings.TrimSpace(p.Question), code, k, p.EntryPoint))
}

func user(content string) []Message { return []Message{{Role: "user", Content: content}} }
