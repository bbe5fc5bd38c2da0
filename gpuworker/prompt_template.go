package gpuworker

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode/utf8"

	"codea1/events"
)

// CodeTemplate is the text of a template for the Code LLM's prompts. A file is read at
// once and replaced by its text. The saved configuration and run.started therefore do
// not need the file.
type CodeTemplate string

// UnmarshalText implements encoding.TextUnmarshaler. The text is a template or a file.
func (t *CodeTemplate) UnmarshalText(templateOrFile []byte) error {
	text, err := readTemplate(events.RoleCode, string(templateOrFile))
	*t = CodeTemplate(text)
	return err
}

// TestTemplate is a CodeTemplate for the Test LLM's prompts.
type TestTemplate string

// UnmarshalText implements encoding.TextUnmarshaler. The text is a template or a file.
func (t *TestTemplate) UnmarshalText(templateOrFile []byte) error {
	text, err := readTemplate(events.RoleTest, string(templateOrFile))
	*t = TestTemplate(text)
	return err
}

// maxTemplateBytes bounds a template. A usual one has 1 or 2 KiB.
const maxTemplateBytes = 64 << 10

// readTemplate returns the text of a template that is given by its text or its file.
// Every template has an action, because it shows the question.
func readTemplate(role events.Role, templateOrFile string) (string, error) {
	if templateOrFile == "" {
		return "", nil
	}
	name, text := fmt.Sprintf("%s-prompt", role), templateOrFile
	if !strings.Contains(templateOrFile, "{{") {
		name = templateOrFile
		info, err := os.Stat(name)
		if err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() || info.Size() > maxTemplateBytes {
			return "", fmt.Errorf("prompt %s: want a regular file of at most %d bytes", name, maxTemplateBytes)
		}
		file, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		text = string(file)
	}
	_, err := newPrompt(role, name, text)
	return text, err
}

// promptFunctions are the functions of a template. Others, such as printf, can take any
// amount of memory.
var promptFunctions = []string{"trim", "and", "or", "not", "len", "index", "eq", "ne", "lt", "le", "gt", "ge"}

var (
	codeFields    = []string{"Question", "EntryPoint", "Signature"}
	testFields    = append([]string{"Code", "Tests", "History"}, codeFields...)
	historyFields = []string{"Call", "Expected", "Count"}
)

// newPrompt returns the prompt of a template. An error names the template and the line. A
// template comes with run.started, too: it can neither loop without an end nor take much
// memory.
func newPrompt(role events.Role, name, text string) (*Prompt, error) {
	if len(text) > maxTemplateBytes || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, fmt.Errorf("prompt %s: want at most %d bytes of UTF-8", name, maxTemplateBytes)
	}
	parsed, err := template.New(name).Funcs(template.FuncMap{"trim": strings.TrimSpace}).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("prompt %s", strings.TrimPrefix(err.Error(), "template: "))
	}
	if len(parsed.Templates()) > 1 {
		return nil, fmt.Errorf("prompt %s: define and block are not supported", name)
	}
	fields := codeFields
	if role == events.RoleTest {
		fields = testFields
	}
	check := templateCheck{tree: parsed.Tree, known: fields}
	if parsed.Tree != nil {
		check.node(parsed.Root)
	}
	if check.err == nil && !check.question {
		check.err = fmt.Errorf("%s:1: no action shows the question: write {{.Question}}", name)
	}
	p := &Prompt{template: parsed}
	problem := &events.Problem{Question: "q", EntryPoint: "f", Solution: "def f(x):\n    return x\n"}
	for _, history := range [][]events.HistoricalTest{nil, {{Call: "f(1)", Expected: "1", Count: 2}}} {
		if check.err == nil {
			if err := parsed.Execute(new(boundedText), TestFields(problem, "c", 1, history)); err != nil {
				check.err = errors.New(strings.TrimPrefix(err.Error(), "template: "))
			}
		}
	}
	if check.err != nil {
		return nil, fmt.Errorf("prompt %w", check.err)
	}
	return p, nil
}

// templateCheck examines the nodes of a template. It keeps the first error.
type templateCheck struct {
	tree     *parse.Tree
	known    []string // fields
	inRange  bool
	question bool // some node shows the question
	err      error
}

func (c *templateCheck) refuse(n parse.Node, format string, args ...any) {
	if c.err == nil {
		place, _ := c.tree.ErrorContext(n)
		c.err = fmt.Errorf("%s: %w", place, fmt.Errorf(format, args...))
	}
}

func (c *templateCheck) node(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, each := range n.Nodes {
				c.node(each)
			}
		}
	case *parse.ActionNode:
		c.node(n.Pipe)
	case *parse.IfNode:
		c.branch(&n.BranchNode)
	case *parse.WithNode:
		c.branch(&n.BranchNode)
	case *parse.RangeNode:
		// A range over a number could run for years.
		if over := n.Pipe.Cmds[0].String(); len(n.Pipe.Cmds) > 1 || !slices.Contains([]string{".History", "$.History"}, over) || c.inRange {
			c.refuse(n, "range %s is not supported; want {{range .History}} outside of another range", n.Pipe)
			return
		}
		c.inRange, c.known = true, append(slices.Clone(historyFields), c.known...)
		c.branch(&n.BranchNode)
		c.inRange, c.known = false, c.known[len(historyFields):]
	case *parse.TemplateNode:
		c.refuse(n, "template is not supported")
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			for _, argument := range command.Args {
				c.node(argument)
			}
		}
	case *parse.IdentifierNode:
		if !slices.Contains(promptFunctions, n.Ident) {
			c.refuse(n, "function %s is not supported; there are %s", n.Ident, strings.Join(promptFunctions, ", "))
		}
	case *parse.FieldNode:
		c.field(n, n.Ident)
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			c.field(n, n.Ident[1:])
		}
	case *parse.ChainNode:
		c.node(n.Node)
	}
}

func (c *templateCheck) branch(n *parse.BranchNode) {
	c.node(n.Pipe)
	c.node(n.List)
	c.node(n.ElseList)
}

func (c *templateCheck) field(n parse.Node, names []string) {
	if len(names) == 0 {
		return
	}
	if !slices.Contains(c.known, names[0]) {
		c.refuse(n, "field .%s does not exist for this role; there are .%s", names[0], strings.Join(c.known, ", ."))
	}
	c.question = c.question || names[0] == "Question"
}
