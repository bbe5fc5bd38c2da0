package minipy

import (
	"strconv"
	"strings"
)

// Source returns the function as Python source, ending without a newline.
func (f *Func) Source() string {
	var b strings.Builder
	b.WriteString(f.Header())
	p := printer{&b}
	p.block(f.Body, indentSpaces)
	return b.String()
}

type printer struct{ *strings.Builder }

func (p printer) block(block *Node, indent int) {
	for _, n := range block.Kids {
		p.WriteString("\n" + strings.Repeat(" ", indent))
		switch n.Op {
		case OpReturn:
			p.WriteString("return ")
			p.expr(n.Kids[0], precTernary)
		case OpAssign:
			p.WriteString(n.Text + " = ")
			p.expr(n.Kids[0], precTernary)
		case OpAddAssign:
			p.WriteString(n.Text + " += ")
			p.expr(n.Kids[0], precTernary)
		case OpIf:
			p.WriteString("if ")
			p.expr(n.Kids[0], precTernary)
			p.WriteString(":")
			p.block(n.Kids[1], indent+indentSpaces)
		case OpFor:
			p.WriteString("for " + strings.Join(n.Vars, ", ") + " in ")
			p.expr(n.Kids[0], precTernary)
			p.WriteString(":")
			p.block(n.Kids[1], indent+indentSpaces)
		}
	}
}

// level returns how tightly an expression binds.
func level(n *Node) int {
	switch n.Op {
	case OpTernary:
		return precTernary
	case OpOr:
		return precOr
	case OpAnd:
		return precAnd
	case OpNot:
		return precNot
	case OpCompare:
		return precCompare
	case OpBinary:
		if n.Text == "+" || n.Text == "-" {
			return precSum
		}
		return precProduct
	case OpNegate:
		return precUnary
	default:
		return precPostfix
	}
}

// expr writes n, in parentheses if it binds more loosely than least.
func (p printer) expr(n *Node, least int) {
	own := level(n)
	if own < least {
		p.WriteString("(")
		p.expr(n, precTernary)
		p.WriteString(")")
		return
	}
	switch n.Op {
	case OpInt:
		p.WriteString(strconv.Itoa(n.N))
	case OpStr:
		p.WriteString("'" + n.Text + "'")
	case OpConst, OpName:
		p.WriteString(n.Text)
	case OpList:
		p.WriteString("[")
		p.list(n.Kids)
		p.WriteString("]")
	case OpComp:
		p.WriteString("[")
		p.comprehension(n)
		p.WriteString("]")
	case OpGen:
		p.WriteString("(")
		p.comprehension(n)
		p.WriteString(")")
	case OpBinary:
		p.infix(n, " "+n.Text+" ", own, own+1)
	case OpCompare:
		p.infix(n, " "+n.Text+" ", own+1, own+1)
	case OpAnd:
		p.infix(n, " and ", own, own+1)
	case OpOr:
		p.infix(n, " or ", own, own+1)
	case OpNot:
		p.WriteString("not ")
		p.expr(n.Kids[0], own)
	case OpNegate:
		p.WriteString("-")
		p.expr(n.Kids[0], own)
	case OpTernary:
		p.expr(n.Kids[0], precOr)
		p.WriteString(" if ")
		p.expr(n.Kids[1], precOr)
		p.WriteString(" else ")
		p.expr(n.Kids[2], precTernary)
	case OpKeyword:
		p.WriteString(n.Text + "=")
		p.expr(n.Kids[0], precTernary)
	case OpCall:
		p.WriteString(n.Text)
		p.arguments(n.Kids)
	case OpMethod:
		p.expr(n.Kids[0], precPostfix)
		p.WriteString("." + n.Text)
		p.arguments(n.Kids[1:])
	case OpIndex:
		p.expr(n.Kids[0], precPostfix)
		p.WriteString("[")
		p.expr(n.Kids[1], precTernary)
		p.WriteString("]")
	case OpSlice:
		p.slice(n)
	}
}

func (p printer) infix(n *Node, operator string, left, right int) {
	p.expr(n.Kids[0], left)
	p.WriteString(operator)
	p.expr(n.Kids[1], right)
}

func (p printer) comprehension(n *Node) {
	p.expr(n.Kids[0], precTernary)
	p.WriteString(" for " + strings.Join(n.Vars, ", ") + " in ")
	p.expr(n.Kids[1], precOr)
	if n.Kids[2] != nil {
		p.WriteString(" if ")
		p.expr(n.Kids[2], precOr)
	}
}

func (p printer) list(items []*Node) {
	for i, item := range items {
		if i > 0 {
			p.WriteString(", ")
		}
		p.expr(item, precTernary)
	}
}

// arguments writes a call's arguments; a generator that stands alone needs no
// parentheses of its own.
func (p printer) arguments(arguments []*Node) {
	p.WriteString("(")
	if len(arguments) == 1 && arguments[0].Op == OpGen {
		p.comprehension(arguments[0])
	} else {
		p.list(arguments)
	}
	p.WriteString(")")
}

func (p printer) slice(n *Node) {
	p.expr(n.Kids[0], precPostfix)
	p.WriteString("[")
	for i, part := range n.Kids[1:] {
		if i == 1 || i == 2 && part != nil {
			p.WriteString(":")
		}
		if part != nil {
			p.expr(part, precTernary)
		}
	}
	p.WriteString("]")
}

// Header returns the first line of Source, up to its colon.
func (f *Func) Header() string {
	return "def " + f.Name + "(" + strings.Join(f.Params, ", ") + "):"
}
