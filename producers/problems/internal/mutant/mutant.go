package mutant

import "codea1/producers/problems/internal/minipy"

// Bug names a kind of mistake.
type Bug string

// The mistakes.
const (
	Boundary        Bug = "boundary"         // > for >=
	Direction       Bug = "direction"        // < for >
	Negation        Bug = "negation"         // == for !=, odd for even
	Constant        Bug = "constant"         // a number off by one
	SliceBound      Bug = "slice_bound"      // xs[:2] for xs[:3], xs[1::2] for xs[::2]
	RangeBound      Bug = "range_bound"      // range(1, n) for range(1, n + 1)
	Operator        Bug = "operator"         // - for +
	Sign            Bug = "sign"             // x for -x
	ForgotFilter    Bug = "forgot_filter"    // the comprehension takes everything
	ForgotCondition Bug = "forgot_condition" // one side of an and
	ForgotBranch    Bug = "forgot_branch"    // one of two cases only
	ForgotMap       Bug = "forgot_map"       // the items themselves
	ForgotAbs       Bug = "forgot_abs"
	ForgotSort      Bug = "forgot_sort"
	ForgotDistinct  Bug = "forgot_distinct"
	ForgotReverse   Bug = "forgot_reverse"
	SortOrder       Bug = "sort_order" // descending for ascending
	AndOr           Bug = "and_or"
	SwappedBranches Bug = "swapped_branches"
	Reducer         Bug = "reducer"      // min for max, count for sum
	Quantifier      Bug = "quantifier"   // any for all
	SkippedItem     Bug = "skipped_item" // the loop starts late or ends early
	EmptyInput      Bug = "empty_input"
	StringMethod    Bug = "string_method" // lower for upper
	LetterCase      Bug = "letter_case"   // only the lower-case vowels
)

var omissions = map[Bug]bool{
	ForgotFilter: true, ForgotCondition: true, ForgotMap: true, ForgotAbs: true,
	ForgotBranch: true, ForgotSort: true, ForgotDistinct: true, ForgotReverse: true,
}

// Omission reports whether the mistake leaves a part of the question out. A
// program that behaves the same without that part has a question that says too
// much.
func (b Bug) Omission() bool { return omissions[b] }

// Mutant is a program with one mistake.
type Mutant struct {
	Func *minipy.Func
	Bug  Bug
}

// Of returns the program's mutants, without repetitions, in the order of the
// program's text. Some may behave like the program itself.
func Of(f *minipy.Func) []Mutant {
	seen := map[string]bool{f.Source(): true}
	var mutants []Mutant
	for _, s := range Slips(f) {
		m := Mutant{s.Func(), s.Bug}
		if source := m.Func.Source(); !seen[source] {
			seen[source] = true
			mutants = append(mutants, m)
		}
	}
	return mutants
}

// Slip is a mutant before it is made: most slips are only counted.
type Slip struct {
	Bug  Bug
	of   *minipy.Func
	path []int // from the body, the kid to enter at each step
	node *minipy.Node
}

// Func makes the mutant.
func (s *Slip) Func() *minipy.Func {
	return &minipy.Func{Name: s.of.Name, Params: s.of.Params, Body: replace(s.of.Body, s.path, s.node)}
}

func replace(n *minipy.Node, path []int, by *minipy.Node) *minipy.Node {
	if len(path) == 0 {
		return by
	}
	return n.With(path[0], replace(n.Kids[path[0]], path[1:], by))
}

// Slips returns the slips that Of makes mutants from, repetitions included.
func Slips(f *minipy.Func) []Slip {
	w := walk{of: f}
	w.enter(f.Body, nil, Constant)
	return w.slips
}

type walk struct {
	of    *minipy.Func
	slips []Slip
}

// slip is a node in place of the one it was made from.
type slip struct {
	node *minipy.Node
	bug  Bug
}

// enter collects the slips of the node and of everything below it. number is
// the mistake that a changed int literal stands for here, "" when ints must
// stay as they are.
func (w *walk) enter(n *minipy.Node, path []int, number Bug) {
	for _, s := range slipsOf(n, number) {
		w.slips = append(w.slips, Slip{s.bug, w.of, path, s.node})
	}
	for i, kid := range n.Kids {
		if kid != nil {
			w.enter(kid, append(path[:len(path):len(path)], i), numberBelow(n, i, number))
		}
	}
}

// numberBelow returns which mistake an int stands for in the node's kid i.
func numberBelow(n *minipy.Node, i int, number Bug) Bug {
	switch {
	case n.Op == minipy.OpSlice && i > 0:
		if step := n.Kids[3]; step != nil {
			return "" // slipsOf moves the start of a strided slice
		}
		return SliceBound
	case n.Op == minipy.OpCall && n.Text == "range":
		return RangeBound
	case n.Op == minipy.OpIndex && i == 1, n.Op == minipy.OpKeyword:
		return ""
	case n.Op == minipy.OpNegate && number == Constant, n.Op == minipy.OpBinary && number == RangeBound:
		return "" // slipsOf changes them as a whole: nobody writes -0 or n + 0
	case n.Op == minipy.OpCompare && isParity(n):
		return ""
	default:
		return number
	}
}

// isParity recognises x % 2 == 0 and x % k == 0 alike: the comparison with a
// remainder, whose constants slipsOf changes as a whole.
func isParity(n *minipy.Node) bool {
	left, right := n.Kids[0], n.Kids[1]
	return left.Op == minipy.OpBinary && left.Text == "%" && right.Op == minipy.OpInt && right.N < 2
}
