package gpuworker

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
	"text/template"

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

//go:embed prompts/*.tmpl
var styles embed.FS

// PromptFlags are the settings of the prompts of both roles.
type PromptFlags struct {
	PromptStyle Style        `yaml:"prompt-style" help:"Prompts for the models: paper (full instructions) or plain (only the question)." default:"paper" enum:"paper,plain"`
	CodePrompt  CodeTemplate `yaml:"code-prompt" help:"Template file of the Code LLM's prompts (gpuworker/PROMPTS.md); empty for that of the style." placeholder:"FILE"`
	TestPrompt  TestTemplate `yaml:"test-prompt" help:"Template file of the Test LLM's prompts (gpuworker/PROMPTS.md); empty for that of the style." placeholder:"FILE"`
}

// Template returns the text of a role's template.
func (f *PromptFlags) Template(role events.Role) (string, error) {
	text := string(f.CodePrompt)
	if role == events.RoleTest {
		text = string(f.TestPrompt)
	}
	if text != "" {
		return text, nil
	}
	file, err := styles.ReadFile(fmt.Sprintf("prompts/%s_%s.tmpl", role, f.PromptStyle))
	if err != nil {
		return "", fmt.Errorf("prompt style %q is unknown, want %q or %q", string(f.PromptStyle), StylePlain, StylePaper)
	}
	return string(file), nil
}

// Prompt returns the prompt of a role.
func (f *PromptFlags) Prompt(role events.Role) (*Prompt, error) {
	text, err := f.Template(role)
	if err != nil {
		return nil, err
	}
	p, err := newPrompt(role, fmt.Sprintf("%s-prompt", role), text)
	if err == nil {
		p.open = f.PromptStyle == StylePlain
	}
	return p, err
}

// BlindPrompt returns the prompt of role test without the answer, for a model that
// writes the answers too and could agree with itself. A template file of the user
// takes its place.
func (f *PromptFlags) BlindPrompt() (*Prompt, error) {
	if f.TestPrompt != "" {
		return f.Prompt(events.RoleTest)
	}
	text, err := f.BlindTemplate()
	if err != nil {
		return nil, err
	}
	return newPrompt(events.RoleTest, "blind prompt", string(text))
}

// BlindTemplate returns the template of the style's prompt without the answer.
func (f *PromptFlags) BlindTemplate() (TestTemplate, error) {
	file, err := styles.ReadFile(fmt.Sprintf("prompts/blind_%s.tmpl", f.PromptStyle))
	if err != nil {
		return "", fmt.Errorf("prompt style %q has no prompt without the answer", string(f.PromptStyle))
	}
	return TestTemplate(file), nil
}

// Prompt writes the prompts of one role from a template.
type Prompt struct {
	template *template.Template
	// open says that the later rounds of a suite continue the text of the response, as
	// for the embedded models. Else they are turns of a chat.
	open bool
}

// PromptFields are the fields of a template. The last three are for the Test LLM only.
type PromptFields struct {
	Question   string
	EntryPoint string // the name or the expression that tests call
	solution   string // the ground truth
	predict    bool   // the question is the whole prompt
	Code       string // the program under test, without line feeds at its end
	Tests      int    // wanted
	History    []events.HistoricalTest
}

// CodeFields returns the fields of the prompt that asks the Code LLM to solve a
// problem.
func CodeFields(p *events.Problem) PromptFields {
	return PromptFields{Question: p.Question, EntryPoint: p.EntryPoint, solution: p.Solution, predict: len(p.Predict) > 0}
}

// TestFields returns the fields of the prompt that asks the Test LLM for k tests that
// code, an answer to the problem, fails.
func TestFields(p *events.Problem, code string, k int, history []events.HistoricalTest) PromptFields {
	fields := CodeFields(p)
	fields.Code, fields.Tests, fields.History = strings.TrimRight(code, "\n"), k, history
	return fields
}

// Signature returns the begin of the definition of the entry point in the ground truth,
// up to its colon; empty if the ground truth has no such definition.
func (f PromptFields) Signature() string {
	name := f.EntryPoint[strings.LastIndexByte(f.EntryPoint, '.')+1:]
	begin := regexp.MustCompile(`(?:async )?\bdef ` + regexp.QuoteMeta(name) + `\(`).FindStringIndex(f.solution)
	if begin == nil {
		return ""
	}
	text, open, quote := f.solution[begin[0]:], 0, rune(0)
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case strings.ContainsRune("([{", r):
			open++
		case strings.ContainsRune(")]}", r):
			open--
		case r == ':' && open == 0:
			return text[:i]
		case r == '#' || r == '\n' && open == 0:
			return ""
		}
	}
	return ""
}

// Write returns the prompt with the fields of a problem. That of a predict problem is its
// question, because templates ask for programs. The error is ErrPromptTooLong if
// its text exceeds every model's context.
func (p *Prompt) Write(fields PromptFields) ([]Message, error) {
	var b boundedText
	if fields.predict {
		b.text.WriteString(fields.Question)
	} else if err := p.template.Execute(&b, fields); err != nil {
		return nil, fmt.Errorf("prompt %w", err)
	}
	return []Message{{Role: "user", Content: strings.TrimSuffix(b.text.String(), "\n")}}, nil
}

// maxPromptBytes bounds the text of a prompt.
const maxPromptBytes = 4 * events.MaxTextBytes

// boundedText is a text of at most maxPromptBytes.
type boundedText struct{ text strings.Builder }

func (b *boundedText) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxPromptBytes {
		return 0, fmt.Errorf("%w: its text has more than %d bytes", ErrPromptTooLong, maxPromptBytes)
	}
	return b.text.Write(p)
}
