package minipy

import (
	"errors"
	"fmt"
	"strconv"
)

// Precedence levels, loosest first.
const (
	precTernary = iota
	precOr
	precAnd
	precNot
	precCompare
	precSum
	precProduct
	precUnary
	precPostfix
)

func (p *parser) expression() (*Node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	defer func() { p.depth-- }()
	then, err := p.binary(precOr)
	if err != nil || !p.acceptName("if") {
		return then, err
	}
	condition, err := p.binary(precOr)
	if err != nil {
		return nil, err
	}
	if !p.acceptName("else") {
		return nil, errors.New("conditional without else")
	}
	otherwise, err := p.expression()
	return &Node{Op: OpTernary, Kids: []*Node{then, condition, otherwise}}, err
}

// binary reads operators of this precedence level and tighter ones.
func (p *parser) binary(level int) (*Node, error) {
	switch level {
	case precNot:
		if !p.acceptName("not") {
			return p.binary(level + 1)
		}
		if p.depth++; p.depth > maxDepth {
			return nil, errors.New("nested too deeply")
		}
		defer func() { p.depth-- }()
		operand, err := p.binary(precNot)
		return &Node{Op: OpNot, Kids: []*Node{operand}}, err
	case precUnary:
		if !p.accept("-") {
			return p.postfix()
		}
		if p.depth++; p.depth > maxDepth {
			return nil, errors.New("nested too deeply")
		}
		defer func() { p.depth-- }()
		operand, err := p.binary(precUnary)
		return &Node{Op: OpNegate, Kids: []*Node{operand}}, err
	}
	left, err := p.binary(level + 1)
	for operators := 0; err == nil; operators++ {
		op, text := p.operator(level)
		if text == "" {
			return left, nil
		}
		if level == precCompare && operators > 0 {
			return nil, errors.New("chained comparison")
		}
		var right *Node
		right, err = p.binary(level + 1)
		left = &Node{Op: op, Text: text, Kids: []*Node{left, right}}
	}
	return nil, err
}

// operator takes an operator of the level and returns its text, "" if there is none.
func (p *parser) operator(level int) (Op, string) {
	t := p.peek()
	switch {
	case level == precOr && p.acceptName("or"):
		return OpOr, "or"
	case level == precAnd && p.acceptName("and"):
		return OpAnd, "and"
	case level == precCompare && p.acceptName("in"):
		return OpCompare, "in"
	case level == precCompare && t == token{tokenName, "not"}:
		p.next++
		if p.acceptName("in") {
			return OpCompare, "not in"
		}
		p.next--
	case t.kind != tokenMark:
	case level == precCompare:
		switch t.text {
		case "<", "<=", ">", ">=", "==", "!=":
			p.next++
			return OpCompare, t.text
		}
	case level == precSum && (t.text == "+" || t.text == "-"),
		level == precProduct && (t.text == "*" || t.text == "//" || t.text == "%"):
		p.next++
		return OpBinary, t.text
	}
	return 0, ""
}

func (p *parser) postfix() (*Node, error) {
	value, err := p.atom()
	for err == nil {
		switch {
		case p.accept("."):
			var method string
			if method, err = p.name(); err != nil {
				break
			}
			if err = p.expect("("); err != nil {
				break
			}
			var arguments []*Node
			arguments, err = p.arguments()
			value = &Node{Op: OpMethod, Text: method, Kids: append([]*Node{value}, arguments...)}
		case p.accept("["):
			value, err = p.subscript(value)
		default:
			return value, nil
		}
	}
	return nil, err
}

// subscript reads an index or slice up to its "]".
func (p *parser) subscript(receiver *Node) (*Node, error) {
	parts := [3]*Node{}
	colons := 0
	for !p.accept("]") {
		if p.accept(":") {
			if colons++; colons > 2 {
				return nil, errors.New("slice with three colons")
			}
			continue
		}
		if parts[colons] != nil {
			return nil, fmt.Errorf("unexpected %q in a slice", p.peek().text)
		}
		part, err := p.expression()
		if err != nil {
			return nil, err
		}
		parts[colons] = part
	}
	if colons == 0 {
		if parts[0] == nil {
			return nil, errors.New("empty index")
		}
		return &Node{Op: OpIndex, Kids: []*Node{receiver, parts[0]}}, nil
	}
	return &Node{Op: OpSlice, Kids: []*Node{receiver, parts[0], parts[1], parts[2]}}, nil
}

func (p *parser) atom() (*Node, error) {
	t := p.peek()
	p.next++
	switch {
	case t.kind == tokenInt:
		n, err := strconv.Atoi(t.text)
		if err == nil && len(t.text) > 1 && t.text[0] == '0' {
			err = errors.New("leading zero")
		}
		return &Node{Op: OpInt, N: n}, err
	case t.kind == tokenStr:
		return &Node{Op: OpStr, Text: t.text}, nil
	case t == token{tokenMark, "("}:
		value, err := p.element()
		if err != nil {
			return nil, err
		}
		return value, p.expect(")")
	case t == token{tokenMark, "["}:
		return p.list()
	case t.kind != tokenName:
		return nil, fmt.Errorf("unexpected %q", t.text)
	case t.text == "True" || t.text == "False" || t.text == "None":
		return &Node{Op: OpConst, Text: t.text}, nil
	case keywords[t.text]:
		return nil, fmt.Errorf("unexpected %q", t.text)
	case p.accept("("):
		arguments, err := p.arguments()
		return &Node{Op: OpCall, Text: t.text, Kids: arguments}, err
	default:
		return &Node{Op: OpName, Text: t.text}, nil
	}
}

// element reads an expression and, if "for" follows, the rest of a generator.
func (p *parser) element() (*Node, error) {
	value, err := p.expression()
	if err != nil || !p.acceptName("for") {
		return value, err
	}
	return p.comprehension(OpGen, value)
}

// comprehension reads what follows "for".
func (p *parser) comprehension(op Op, value *Node) (*Node, error) {
	vars, err := p.names()
	if err != nil {
		return nil, err
	}
	if !p.acceptName("in") {
		return nil, errors.New("for without in")
	}
	iterable, err := p.binary(precOr)
	if err != nil {
		return nil, err
	}
	var condition *Node
	if p.acceptName("if") {
		if condition, err = p.binary(precOr); err != nil {
			return nil, err
		}
	}
	return &Node{Op: op, Vars: vars, Kids: []*Node{value, iterable, condition}}, nil
}

func (p *parser) list() (*Node, error) {
	list := &Node{Op: OpList}
	for !p.accept("]") {
		item, err := p.expression()
		if err != nil {
			return nil, err
		}
		if len(list.Kids) == 0 && p.acceptName("for") {
			if item, err = p.comprehension(OpComp, item); err != nil {
				return nil, err
			}
			return item, p.expect("]")
		}
		list.Kids = append(list.Kids, item)
		if !p.accept(",") && p.peek() != (token{tokenMark, "]"}) {
			return nil, fmt.Errorf("unexpected %q in a list", p.peek().text)
		}
	}
	return list, nil
}

// arguments reads call arguments up to ")".
func (p *parser) arguments() ([]*Node, error) {
	var arguments []*Node
	for !p.accept(")") {
		keyword := ""
		if t := p.peek(); t.kind == tokenName && p.next+1 < len(p.tokens) && p.tokens[p.next+1] == (token{tokenMark, "="}) {
			keyword = t.text
			p.next += 2
		}
		argument, err := p.element()
		if err != nil {
			return nil, err
		}
		if keyword != "" {
			argument = &Node{Op: OpKeyword, Text: keyword, Kids: []*Node{argument}}
		}
		arguments = append(arguments, argument)
		if !p.accept(",") && p.peek() != (token{tokenMark, ")"}) {
			return nil, fmt.Errorf("unexpected %q in a call", p.peek().text)
		}
	}
	return arguments, nil
}
