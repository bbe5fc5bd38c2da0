package minipy

// Op says what a Node is.
type Op uint8

// Expressions, then statements. Kids are listed in brackets.
const (
	OpInt       Op = iota // N
	OpStr                 // Text
	OpConst               // Text: True, False or None
	OpName                // Text
	OpList                // [items...]
	OpComp                // list comprehension over Vars: [element, iterable, condition or nil]
	OpGen                 // generator expression, same kids
	OpBinary              // Text: + - * // %; [left, right]
	OpCompare             // Text: < <= > >= == != in, not in; [left, right]
	OpAnd                 // [left, right]
	OpOr                  // [left, right]
	OpNot                 // [operand]
	OpNegate              // [operand]
	OpTernary             // [then, condition, else]
	OpCall                // Text: the function; [arguments...]
	OpMethod              // Text: the method; [receiver, arguments...]
	OpKeyword             // Text: the argument's name; [value]
	OpIndex               // [receiver, index]
	OpSlice               // [receiver, low, high, step], the last three nil when absent
	OpBlock               // [statements...]
	OpReturn              // [value]
	OpIf                  // [condition, block]
	OpFor                 // over Vars: [iterable, block]
	OpAssign              // Text: the variable; [value]
	OpAddAssign           // Text: the variable; [value]
)

// Node is one node of a program. Nodes are immutable once parsed; a changed
// program shares the nodes that did not change.
type Node struct {
	Op   Op
	Text string
	N    int
	Vars []string
	Kids []*Node
}

// With returns a copy of n whose kid at index i is replaced.
func (n *Node) With(i int, kid *Node) *Node {
	clone := *n
	clone.Kids = append([]*Node(nil), n.Kids...)
	clone.Kids[i] = kid
	return &clone
}

// WithText returns a copy of n with another Text.
func (n *Node) WithText(text string) *Node {
	clone := *n
	clone.Text = text
	return &clone
}

// Func is one function definition.
type Func struct {
	Name   string
	Params []string
	Body   *Node // OpBlock
}
