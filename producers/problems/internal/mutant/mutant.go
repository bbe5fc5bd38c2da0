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
	for _, m := range Slips(f) {
		if source := m.Func.Source(); !seen[source] {
			seen[source] = true
			mutants = append(mutants, m)
		}
	}
	return mutants
}

// Slips is Of with repetitions, which are cheaper to leave in than to find.
func Slips(f *minipy.Func) []Mutant {
	slips := slipsWithin(f.Body, Constant)
	mutants := make([]Mutant, len(slips))
	for i, s := range slips {
		mutants[i] = Mutant{&minipy.Func{Name: f.Name, Params: f.Params, Body: s.node}, s.bug}
	}
	return mutants
}

// slip is a node in place of the one it was made from.
type slip struct {
	node *minipy.Node
	bug  Bug
}

// slipsWithin returns the slips of the node itself and of everything below it.
// number is the mistake that a changed int literal stands for here, "" when
// ints must stay as they are.
func slipsWithin(n *minipy.Node, number Bug) []slip {
	slips := slipsOf(n, number)
	for i, kid := range n.Kids {
		if kid == nil {
			continue
		}
		for _, s := range slipsWithin(kid, numberBelow(n, i, number)) {
			slips = append(slips, slip{n.With(i, s.node), s.bug})
		}
	}
	return slips
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
