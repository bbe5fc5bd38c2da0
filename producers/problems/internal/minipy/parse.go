package minipy

import (
	"errors"
	"fmt"
	"strings"
)

const (
	maxSourceBytes = 4096
	maxDepth       = 64
	indentSpaces   = 4
)

// ErrSyntax is wrapped by every error of Parse.
var ErrSyntax = errors.New("not in the Python subset")

type parser struct {
	lines []string // the lines not yet read
	depth int

	tokens []token // of the current line
	next   int
}

// Parse reads one function definition. Source that leaves the subset is an
// error that wraps ErrSyntax.
func Parse(source string) (*Func, error) {
	if len(source) > maxSourceBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrSyntax, maxSourceBytes)
	}
	p := &parser{lines: strings.Split(strings.TrimRight(source, "\n"), "\n")}
	f, err := p.function()
	if err == nil && len(p.lines) > 0 {
		err = errors.New("text after the function")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return f, nil
}

func (p *parser) function() (*Func, error) {
	if err := p.readLine(0); err != nil {
		return nil, err
	}
	if !p.acceptName("def") {
		return nil, errors.New("no function definition")
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	params, err := p.names()
	if err != nil {
		return nil, err
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	body, err := p.suite(0)
	if err != nil {
		return nil, err
	}
	return &Func{Name: name, Params: params, Body: body}, nil
}

// readLine makes the next line current; it must be indented exactly this deep.
func (p *parser) readLine(indent int) error {
	if len(p.lines) == 0 || indentOf(p.lines[0]) != indent {
		return errors.New("unexpected indentation")
	}
	tokens, err := lexLine(p.lines[0][indent:])
	if err != nil {
		return err
	}
	p.tokens, p.next, p.lines = tokens, 0, p.lines[1:]
	return nil
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// suite reads ":" and the block under it.
func (p *parser) suite(indent int) (*Node, error) {
	if err := p.expect(":"); err != nil {
		return nil, err
	}
	if err := p.endLine(); err != nil {
		return nil, err
	}
	if p.depth++; p.depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	defer func() { p.depth-- }()
	indent += indentSpaces
	block := &Node{Op: OpBlock}
	for len(p.lines) > 0 && (indentOf(p.lines[0]) == indent || len(block.Kids) == 0) {
		if err := p.readLine(indent); err != nil {
			return nil, err
		}
		statement, err := p.statement(indent)
		if err != nil {
			return nil, err
		}
		block.Kids = append(block.Kids, statement)
	}
	if len(block.Kids) == 0 {
		return nil, errors.New("empty block")
	}
	return block, nil
}

func (p *parser) statement(indent int) (*Node, error) {
	switch {
	case p.acceptName("return"):
		return p.simple(&Node{Op: OpReturn})
	case p.acceptName("if"):
		condition, err := p.expression()
		if err != nil {
			return nil, err
		}
		block, err := p.suite(indent)
		return &Node{Op: OpIf, Kids: []*Node{condition, block}}, err
	case p.acceptName("for"):
		vars, err := p.names()
		if err != nil {
			return nil, err
		}
		if !p.acceptName("in") {
			return nil, errors.New("for without in")
		}
		iterable, err := p.expression()
		if err != nil {
			return nil, err
		}
		block, err := p.suite(indent)
		return &Node{Op: OpFor, Vars: vars, Kids: []*Node{iterable, block}}, err
	}
	if p.peek().kind == tokenName && p.next+1 < len(p.tokens) && p.tokens[p.next+1].kind == tokenMark {
		op := map[string]Op{"=": OpAssign, "+=": OpAddAssign}[p.tokens[p.next+1].text]
		if op != 0 {
			name, err := p.name()
			if err != nil {
				return nil, err
			}
			p.next++
			return p.simple(&Node{Op: op, Text: name})
		}
	}
	return nil, fmt.Errorf("no statement starts with %q", p.peek().text)
}

// simple completes a one-line statement whose only kid is an expression.
func (p *parser) simple(statement *Node) (*Node, error) {
	value, err := p.expression()
	if err != nil {
		return nil, err
	}
	statement.Kids = []*Node{value}
	return statement, p.endLine()
}

func (p *parser) endLine() error {
	if p.next < len(p.tokens) {
		return fmt.Errorf("unexpected %q", p.tokens[p.next].text)
	}
	return nil
}

func (p *parser) peek() token {
	if p.next >= len(p.tokens) {
		return token{}
	}
	return p.tokens[p.next]
}

func (p *parser) accept(mark string) bool { return p.acceptToken(token{tokenMark, mark}) }

func (p *parser) acceptName(name string) bool { return p.acceptToken(token{tokenName, name}) }

func (p *parser) acceptToken(want token) bool {
	if p.peek() != want {
		return false
	}
	p.next++
	return true
}

func (p *parser) expect(mark string) error {
	if !p.accept(mark) {
		return fmt.Errorf("expected %q, found %q", mark, p.peek().text)
	}
	return nil
}

var keywords = map[string]bool{
	"def": true, "return": true, "if": true, "else": true, "for": true, "in": true, "and": true,
	"or": true, "not": true, "True": true, "False": true, "None": true, "is": true, "lambda": true,
}

func (p *parser) name() (string, error) {
	t := p.peek()
	if t.kind != tokenName || keywords[t.text] {
		return "", fmt.Errorf("expected a name, found %q", t.text)
	}
	p.next++
	return t.text, nil
}

func (p *parser) names() ([]string, error) {
	var names []string
	for {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		if !p.accept(",") {
			return names, nil
		}
	}
}
