package grammar

import (
	"math/rand/v2"
	"strings"
)

// The parts of folds: a source of numbers, up to two filters, a map and a
// reducer, as in "the sum of the squares of the even numbers in xs above 3".
var (
	adjectives = []part{
		{name: "even", say: []string{"even"}, code: "x % 2 == 0"},
		{name: "odd", say: []string{"odd"}, code: "x % 2 == 1"},
		{name: "positive", say: []string{"positive"}, code: "x > 0"},
		{name: "negative", say: []string{"negative"}, code: "x < 0"},
		{name: "nonzero", say: []string{"nonzero"}, code: "x != 0"},
	}
	// multiplicities need the whole list at hand.
	multiplicities = []part{
		{name: "repeated", say: []string{"repeated"}, code: "xs.count(x) > 1"},
		{name: "unrepeated", say: []string{"unrepeated"}, code: "xs.count(x) == 1"},
	}
	clauses = []part{
		{name: "gt", say: []string{"greater than {k}", "above {k}"}, code: "x > {k}", ks: span(1, 8)},
		{name: "ge", say: []string{"of at least {k}"}, code: "x >= {k}", ks: span(2, 9)},
		{name: "lt", say: []string{"less than {k}", "below {k}"}, code: "x < {k}", ks: span(2, 9)},
		{name: "le", say: []string{"of at most {k}"}, code: "x <= {k}", ks: span(1, 8)},
		{name: "div", say: []string{"divisible by {k}"}, code: "x % {k} == 0", ks: span(3, 5)},
		{name: "ndiv", say: []string{"not divisible by {k}"}, code: "x % {k} != 0", ks: span(3, 5)},
		{name: "ne", say: []string{"other than {k}", "not equal to {k}"}, code: "x != {k}", ks: span(1, 9)},
	}
	maps = []part{
		{name: "square", say: []string{"the squares of"}, code: "x * x"},
		{name: "double", say: []string{"the doubles of"}, code: "2 * x"},
		{name: "abs", say: []string{"the absolute values of"}, code: "abs(x)"},
		{name: "opposite", say: []string{"the opposites of"}, code: "-x"},
		{name: "half", say: []string{"the halves of"}, code: "x // 2"},
		{name: "mod", say: []string{"the remainders by {k} of"}, code: "x % {k}", ks: span(3, 5)},
		{name: "plus", say: []string{"{k} plus each of"}, code: "x + {k}", ks: span(2, 9)},
		{name: "minus", say: []string{"{k} minus each of"}, code: "{k} - x", ks: span(2, 9)},
		{name: "times", say: []string{"{k} times each of"}, code: "{k} * x", ks: span(3, 5)},
		{name: "gap", say: []string{"the distances from {k} to"}, code: "abs(x - {k})", ks: span(2, 9)},
	}
)

// source is where numbers come from.
type source struct {
	part
	domain *Domain
	noun   string
	where  string // a condition of its own
	list   bool   // is a list, not just an iterable
}

var (
	fromList = source{part{name: "xs", say: []string{"in xs"}, code: "xs"}, Numbers, "numbers", "", true}
	sublists = []source{
		{part{name: "first", say: []string{"among the first {k} of xs"}, code: "xs[:{k}]", ks: span(2, 4)}, Numbers, "numbers", "", true},
		{part{name: "last", say: []string{"among the last {k} of xs"}, code: "xs[-{k}:]", ks: span(2, 4)}, Numbers, "numbers", "", true},
		{part{name: "after", say: []string{"in xs after the first {k}"}, code: "xs[{k}:]", ks: span(2, 3)}, Numbers, "numbers", "", true},
		{part{name: "even_index", say: []string{"at even indexes of xs"}, code: "xs[::2]"}, Numbers, "numbers", "", true},
		{part{name: "odd_index", say: []string{"at odd indexes of xs"}, code: "xs[1::2]"}, Numbers, "numbers", "", true},
	}
	counters = []source{
		{part{name: "digits", say: []string{"of n"}, code: "map(int, str(abs(n)))"}, Whole, "digits", "", false},
		{part{name: "upto", say: []string{"from 1 to n"}, code: "range(1, n + 1)"}, Count, "numbers", "", false},
		{part{name: "divisors", say: []string{"of n"}, code: "range(1, n + 1)"}, Count, "divisors", "n % x == 0", false},
		{part{name: "between", say: []string{"from a to b"}, code: "range(a, b + 1)"}, Two, "numbers", "", false},
		{part{name: "word_lengths", say: []string{"in s"}, code: "map(len, s.split())"}, Words, "word lengths", "", false},
	}
)

// pickSource favours the plain list.
func pickSource(r *rand.Rand) (source, use) {
	chosen := fromList
	switch p := r.Float64(); {
	case p < 0.25:
		chosen = sublists[r.IntN(len(sublists))]
	case p < 0.50:
		chosen = counters[r.IntN(len(counters))]
	}
	return chosen, pick(r, []part{chosen.part})
}

// The reducers. Code is written around G, the bare generator, and L, the list.
var (
	reducers = []part{
		{name: "sum", say: []string{"the sum of", "the total of"}, code: "sum(G)"},
		{name: "largest", say: []string{"the largest of", "the maximum of"}, code: "max(P, default=0)"},
		{name: "smallest", say: []string{"the smallest of", "the minimum of"}, code: "min(P, default=0)"},
		{name: "count", say: []string{"the number of", "the count of"}, code: "len(L)"},
		{name: "distinct", say: []string{"the number of different values among"}, code: "len(set(G))"},
		{name: "list", say: []string{"the list of"}, code: "L"},
		{name: "ascending", say: []string{"the sorted list of", "the ascending list of"}, code: "sorted(G)"},
		{name: "descending", say: []string{"the descending list of"}, code: "sorted(P, reverse=True)"},
		{name: "reversed", say: []string{"the reversed list of"}, code: "L[::-1]"},
		{name: "unique", say: []string{"the sorted different values among"}, code: "sorted(set(G))"},
		{name: "head", say: []string{"the first {k} of"}, code: "L[:{k}]", ks: span(2, 3)},
		{name: "tail", say: []string{"the last {k} of"}, code: "L[-{k}:]", ks: span(2, 3)},
	}
	ifNone = []string{", or 0 if there are none", ", or 0 if none"}
)

func drawFold(r *rand.Rand) draft {
	from, fromUse := pickSource(r)
	adjective := maybe(r, 0.55, adjectives)
	if from.name == "xs" && r.IntN(12) == 0 {
		adjective = pick(r, multiplicities)
	}
	clause := maybe(r, 0.4, clauses)
	reducer := pick(r, reducers)
	mapping := none
	if reducer.name != "count" {
		mapping = maybe(r, 0.6, maps)
	}
	if reducer.name == "list" && from.name == "xs" && adjective.empty() && clause.empty() && mapping.empty() {
		mapping = pick(r, maps) // the list of the numbers in xs is xs
	}
	condition := conjunction(use{part: part{name: "where", code: from.where}}, adjective, clause)

	var ending any = ""
	if reducer.name == "largest" || reducer.name == "smallest" {
		ending = ifNone
	}
	the := "the"
	if reducer.name == "count" {
		the = ""
	}
	return draft{
		family: "fold",
		uses:   []use{fromUse, adjective, clause, mapping, reducer},
		domain: from.domain,
		say:    say(returns, reducer, mapping, the, adjective, from.noun, fromUse, clause, ending),
		body:   "return " + reduce(reducer.source(), element(mapping), fromUse.source(), condition, from),
	}
}

func element(mapping use) string {
	if mapping.empty() {
		return "x"
	}
	return mapping.source()
}

// reduce applies a reducer to the elements of a source. Without a map and a
// filter that is the source itself.
func reduce(code, element, iterable, condition string, from source) string {
	generator := loop(element, "x", iterable, condition)
	if element != "x" || condition != "" {
		return expand(code, generator, "("+generator+")", "["+generator+"]")
	}
	if from.list {
		return expand(code, iterable, iterable, iterable)
	}
	return expand(code, iterable, iterable, "["+generator+"]")
}

// expand fills a reducer's G (an iterable that stands alone), P (one followed
// by other arguments) and L (a list).
func expand(code, alone, followed, list string) string {
	code = strings.ReplaceAll(code, "G", alone) // no piece of code has these letters
	code = strings.ReplaceAll(code, "P", followed)
	return strings.ReplaceAll(code, "L", list)
}

var returns = []string{"Return", "Compute", "Return"}
