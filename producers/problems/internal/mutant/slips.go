package mutant

import py "codea1/producers/problems/internal/minipy"

var (
	boundaries = map[string]string{">": ">=", ">=": ">", "<": "<=", "<=": "<"}
	directions = map[string]string{">": "<", ">=": "<=", "<": ">", "<=": ">="}
	negations  = map[string]string{"==": "!=", "!=": "==", "in": "not in", "not in": "in"}
	operators  = map[string]string{"+": "-", "-": "+", "*": "+", "%": "//", "//": "%"}
	methods    = map[string]string{
		"upper": "lower", "lower": "upper", "isupper": "islower", "islower": "isupper",
		"isdigit": "isalpha", "isalpha": "isdigit", "startswith": "endswith", "endswith": "startswith",
	}
	functions = map[string]slipTo{
		"max": {"min", Reducer}, "min": {"max", Reducer},
		"any": {"all", Quantifier}, "all": {"any", Quantifier},
	}
)

type slipTo struct {
	name string
	bug  Bug
}

// slipsOf returns the slips of one node, not of its kids.
func slipsOf(n *py.Node, number Bug) []slip {
	switch n.Op {
	case py.OpInt:
		return numberSlips(n, number)
	case py.OpStr:
		if n.Text == "aeiouAEIOU" {
			return []slip{{n.WithText("aeiou"), LetterCase}}
		}
	case py.OpCompare:
		return compareSlips(n)
	case py.OpAnd:
		or := *n
		or.Op = py.OpOr
		return []slip{{n.Kids[0], ForgotCondition}, {n.Kids[1], ForgotCondition}, {&or, AndOr}}
	case py.OpTernary:
		return []slip{
			{n.With(0, n.Kids[2]).With(2, n.Kids[0]), SwappedBranches},
			{n.Kids[0], ForgotBranch},
			{n.Kids[2], ForgotBranch},
		}
	case py.OpBlock:
		return blockSlips(n)
	case py.OpNegate:
		if number == SliceBound {
			return []slip{{n.Kids[0], SliceBound}} // xs[2:] for xs[-2:]
		}
		slips := []slip{{n.Kids[0], Sign}}
		if n.Kids[0].Op == py.OpInt {
			slips = append(slips, slip{integer(0), Constant})
		}
		return slips
	case py.OpBinary:
		if number == RangeBound && n.Text == "+" {
			return []slip{{n.Kids[0], RangeBound}}
		}
		if to, ok := operators[n.Text]; ok {
			return []slip{{n.WithText(to), Operator}}
		}
	case py.OpComp, py.OpGen:
		return comprehensionSlips(n)
	case py.OpFor:
		return skips(n, 0)
	case py.OpSlice:
		return sliceSlips(n)
	case py.OpCall:
		return callSlips(n)
	case py.OpMethod:
		if to, ok := methods[n.Text]; ok {
			return []slip{{n.WithText(to), StringMethod}}
		}
	}
	return nil
}

func numberSlips(n *py.Node, number Bug) []slip {
	if number == "" {
		return nil
	}
	slips := []slip{{integer(n.N + 1), number}}
	if n.N > 0 {
		slips = append(slips, slip{integer(n.N - 1), number})
	}
	return slips
}

func integer(n int) *py.Node { return &py.Node{Op: py.OpInt, N: n} }

func compareSlips(n *py.Node) []slip {
	var slips []slip
	if to, ok := boundaries[n.Text]; ok {
		slips = append(slips, slip{n.WithText(to), Boundary})
	}
	if to, ok := directions[n.Text]; ok {
		slips = append(slips, slip{n.WithText(to), Direction})
	}
	if to, ok := negations[n.Text]; ok {
		slips = append(slips, slip{n.WithText(to), Negation})
	}
	if isParity(n) {
		divisor := n.Kids[0].Kids[1]
		switch {
		case divisor.Op != py.OpInt:
		case divisor.N == 2:
			slips = append(slips, slip{n.With(1, integer(1-n.Kids[1].N)), Negation})
		default:
			slips = append(slips, slip{n.With(0, n.Kids[0].With(1, integer(divisor.N+1))), Constant})
		}
	}
	return slips
}

// blockSlips leaves out each if or its condition.
func blockSlips(n *py.Node) []slip {
	var slips []slip
	for i, kid := range n.Kids {
		if kid.Op != py.OpIf {
			continue
		}
		slips = append(slips, slip{splice(n, i, kid.Kids[1].Kids), ForgotBranch})
		if len(n.Kids) > 1 {
			slips = append(slips, slip{splice(n, i, nil), ForgotBranch})
		}
	}
	return slips
}

// splice returns the block with other statements in place of statement i.
// Whatever would follow a return is left out.
func splice(block *py.Node, i int, statements []*py.Node) *py.Node {
	spliced := *block
	spliced.Kids = append(append([]*py.Node(nil), block.Kids[:i]...), statements...)
	if last := len(spliced.Kids) - 1; last < 0 || spliced.Kids[last].Op != py.OpReturn {
		spliced.Kids = append(spliced.Kids, block.Kids[i+1:]...)
	}
	return &spliced
}

func comprehensionSlips(n *py.Node) []slip {
	var slips []slip
	if n.Kids[2] != nil {
		slips = append(slips, slip{n.With(2, nil), ForgotFilter})
	}
	item := &py.Node{Op: py.OpName, Text: n.Vars[0]}
	if len(n.Vars) == 1 && n.Kids[0].Op != py.OpName && n.Kids[0].Op != py.OpCompare {
		slips = append(slips, slip{n.With(0, item), ForgotMap})
	}
	return append(slips, skips(n, 1)...)
}

// skips lets the iterable at kid i, if it is a list or string, lack an end.
func skips(n *py.Node, i int) []slip {
	iterable := n.Kids[i]
	if iterable.Op != py.OpName && (iterable.Op != py.OpMethod || iterable.Text != "split") {
		return nil
	}
	last := &py.Node{Op: py.OpNegate, Kids: []*py.Node{integer(1)}}
	return []slip{
		{n.With(i, &py.Node{Op: py.OpSlice, Kids: []*py.Node{iterable, integer(1), nil, nil}}), SkippedItem},
		{n.With(i, &py.Node{Op: py.OpSlice, Kids: []*py.Node{iterable, nil, last, nil}}), SkippedItem},
	}
}

func sliceSlips(n *py.Node) []slip {
	low, step := n.Kids[1], n.Kids[3]
	switch {
	case step == nil:
		return nil // its bounds slip as ints
	case step.Op == py.OpNegate:
		return []slip{{n.Kids[0], ForgotReverse}}
	case low == nil:
		return []slip{{n.With(1, integer(1)), SliceBound}, {n.Kids[0], ForgotFilter}}
	default:
		return []slip{{n.With(1, nil), SliceBound}, {n.Kids[0], ForgotFilter}}
	}
}

func callSlips(n *py.Node) []slip {
	var slips []slip
	if to, ok := functions[n.Text]; ok {
		slips = append(slips, slip{n.WithText(to.name), to.bug})
	}
	if last := len(n.Kids) - 1; last > 0 && n.Kids[last].Op == py.OpKeyword {
		without := *n
		without.Kids = n.Kids[:last]
		switch n.Kids[last].Text {
		case "default":
			slips = append(slips, slip{&without, EmptyInput})
		case "reverse":
			slips = append(slips, slip{&without, SortOrder})
		}
	}
	if len(n.Kids) == 0 {
		return slips
	}
	argument := n.Kids[0]
	switch n.Text {
	case "sum", "max", "min", "sorted", "set", "len":
		slips = append(slips, skips(n, 0)...)
	}
	switch n.Text {
	case "abs":
		slips = append(slips, slip{argument, ForgotAbs})
	case "set":
		slips = append(slips, slip{listOf(argument), ForgotDistinct})
	case "sorted":
		if argument.Op != py.OpCall || argument.Text != "set" { // the order of a set is anyone's guess
			slips = append(slips, slip{listOf(argument), ForgotSort})
		}
		if len(n.Kids) == 1 {
			descending := *n
			descending.Kids = []*py.Node{argument, {Op: py.OpKeyword, Text: "reverse", Kids: []*py.Node{{Op: py.OpConst, Text: "True"}}}}
			slips = append(slips, slip{&descending, SortOrder})
		}
	case "sum":
		if argument.Op == py.OpGen || argument.Op == py.OpName {
			slips = append(slips, slip{&py.Node{Op: py.OpCall, Text: "len", Kids: []*py.Node{listOf(argument)}}, Reducer})
		}
	case "len":
		if argument.Op == py.OpComp {
			slips = append(slips, slip{n.WithText("sum"), Reducer})
		}
	}
	return slips
}

// listOf returns an expression for the list of an iterable's items.
func listOf(n *py.Node) *py.Node {
	switch n.Op {
	case py.OpGen:
		list := *n
		list.Op = py.OpComp
		return &list
	case py.OpName, py.OpComp, py.OpSlice:
		return n
	default:
		return &py.Node{Op: py.OpCall, Text: "list", Kids: []*py.Node{n}}
	}
}
