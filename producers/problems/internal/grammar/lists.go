package grammar

import "math/rand/v2"

// predicates complete "is ...".
var predicates = []part{
	{name: "even", say: []string{"even"}, code: "x % 2 == 0"},
	{name: "odd", say: []string{"odd"}, code: "x % 2 == 1"},
	{name: "positive", say: []string{"positive"}, code: "x > 0"},
	{name: "negative", say: []string{"negative"}, code: "x < 0"},
	{name: "gt", say: []string{"greater than {k}", "above {k}"}, code: "x > {k}", ks: span(1, 8)},
	{name: "ge", say: []string{"at least {k}"}, code: "x >= {k}", ks: span(2, 9)},
	{name: "lt", say: []string{"less than {k}", "below {k}"}, code: "x < {k}", ks: span(2, 9)},
	{name: "le", say: []string{"at most {k}"}, code: "x <= {k}", ks: span(1, 8)},
	{name: "div", say: []string{"divisible by {k}"}, code: "x % {k} == 0", ks: span(3, 5)},
}

var quantifiers = []part{
	{name: "every", say: []string{"every"}, code: "all("},
	{name: "some", say: []string{"some"}, code: "any("},
	{name: "no", say: []string{"no"}, code: "not any("},
}

var asks = []string{"Return True if", "Check whether", "Return whether"}

// drawQuantified asks whether every, some or no number has a property.
func drawQuantified(r *rand.Rand) draft {
	from, noun := fromList, "number"
	if r.IntN(4) == 0 {
		from, noun = counters[0], "digit"
	}
	fromUse := pick(r, []part{from.part})
	quantifier, adjective, predicate := pick(r, quantifiers), maybe(r, 0.5, adjectives), pick(r, predicates)
	return draft{
		family: "quantified",
		uses:   []use{fromUse, quantifier, adjective, predicate},
		domain: from.domain,
		say:    say(asks, quantifier, adjective, noun, fromUse, "is", predicate),
		body:   "return " + quantifier.code + loop(predicate.source(), "x", from.code, conjunction(adjective)) + ")",
	}
}

var replacements = []part{
	{name: "zero", say: []string{"replaced by 0", "set to 0"}, code: "0"},
	{name: "constant", say: []string{"replaced by {k}", "set to {k}"}, code: "{k}", ks: span(2, 9)},
	{name: "doubled", say: []string{"doubled"}, code: "2 * x"},
	{name: "squared", say: []string{"squared"}, code: "x * x"},
	{name: "negated", say: []string{"negated"}, code: "-x"},
	{name: "halved", say: []string{"halved"}, code: "x // 2"},
	{name: "increased", say: []string{"increased by {k}"}, code: "x + {k}", ks: span(2, 9)},
	{name: "decreased", say: []string{"decreased by {k}"}, code: "x - {k}", ks: span(2, 9)},
}

// pickFilter picks an adjective, a clause or, now and then, both.
func pickFilter(r *rand.Rand) (adjective, clause use) {
	switch r.IntN(8) {
	case 0, 1, 2:
		return pick(r, adjectives), none
	case 3:
		return pick(r, adjectives), pick(r, clauses)
	default:
		return none, pick(r, clauses)
	}
}

// drawReplaced changes the numbers that pass a filter and keeps the others.
func drawReplaced(r *rand.Rand) draft {
	adjective, clause := pickFilter(r)
	replacement := pick(r, replacements)
	return draft{
		family: "replaced",
		uses:   []use{adjective, clause, replacement},
		domain: Numbers,
		say:    say("Return xs with every", adjective, "number", clause, replacement),
		body:   "return [" + replacement.source() + " if " + conjunction(adjective, clause) + " else x for x in xs]",
	}
}

var (
	finders = []part{
		{name: "first", say: []string{"the first"}, code: "x in xs"},
		{name: "last", say: []string{"the last"}, code: "x in xs[::-1]"},
		{name: "index", say: []string{"the index of the first"}, code: "i, x in enumerate(xs)"},
	}
	fallbacks = []part{
		{name: "minus_one", say: []string{", or -1 if there is none", ", or -1 if none"}, code: "-1"},
		{name: "zero", say: []string{", or 0 if there is none", ", or 0 if none"}, code: "0"},
		{name: "none", say: []string{", or None if there is none"}, code: "None"},
	}
)

// drawFound looks for a number with a property.
func drawFound(r *rand.Rand) draft {
	adjective, clause := pickFilter(r)
	finder, fallback := pick(r, finders), pick(r, fallbacks)
	result := "x"
	if finder.name == "index" {
		result = "i"
		fallback = pick(r, fallbacks[:1])
	}
	return draft{
		family: "found",
		uses:   []use{finder, adjective, clause, fallback},
		domain: Numbers,
		say:    say(returns[:1], finder, adjective, "number in xs", clause, fallback),
		body: "for " + finder.code + ":\n    if " + conjunction(adjective, clause) + ":\n        return " + result +
			"\nreturn " + fallback.code,
	}
}

// commonMaps are the maps without a constant.
var commonMaps = maps[:5]

// drawStopped folds the numbers before the first that has a property.
func drawStopped(r *rand.Rand) draft {
	adjective, clause := pickFilter(r)
	reducer := pick(r, []part{
		{name: "sum", say: []string{"the sum of", "the total of"}, code: "0"},
		{name: "count", say: []string{"the number of", "the count of"}, code: "0"},
		{name: "list", say: []string{"the list of"}, code: "[]"},
	})
	mapping, the, step := none, "the", "1"
	switch reducer.name {
	case "sum":
		mapping = maybe(r, 0.5, commonMaps)
		step = element(mapping)
	case "list":
		mapping = maybe(r, 0.5, commonMaps)
		step = "[" + element(mapping) + "]"
	default:
		the = ""
	}
	return draft{
		family: "stopped",
		uses:   []use{reducer, mapping, adjective, clause},
		domain: Numbers,
		say:    say(returns, reducer, mapping, the, "numbers in xs before the first", adjective, "one", clause),
		body: "r = " + reducer.code + "\nfor x in xs:\n    if " + conjunction(adjective, clause) + ":\n        return r\n    r += " + step +
			"\nreturn r",
	}
}

// drawRunning lists the sums of all prefixes.
func drawRunning(r *rand.Rand) draft {
	adjective, mapping := maybe(r, 0.6, adjectives), maybe(r, 0.7, commonMaps)
	clause := none
	if adjective.empty() {
		clause = maybe(r, 0.6, clauses)
	}
	body := "r = []\nt = 0\nfor x in xs:\n"
	indent := "    "
	if condition := conjunction(adjective, clause); condition != "" {
		body += "    if " + condition + ":\n"
		indent = "        "
	}
	body += indent + "t += " + element(mapping) + "\n" + indent + "r += [t]\nreturn r"
	return draft{
		family: "running",
		uses:   []use{adjective, clause, mapping},
		domain: Numbers,
		say:    say(returns, []string{"the running sums of", "the running totals of"}, mapping, "the", adjective, "numbers in xs", clause),
		body:   body,
	}
}

var (
	pairFilters = []part{
		{name: "rising", say: []string{"rising"}, code: "a < b"},
		{name: "falling", say: []string{"falling"}, code: "a > b"},
		{name: "equal", say: []string{"equal"}, code: "a == b"},
		{name: "unequal", say: []string{"unequal"}, code: "a != b"},
	}
	pairClauses = []part{
		{name: "sum_gt", say: []string{"with a sum above {k}"}, code: "a + b > {k}", ks: span(2, 9)},
		{name: "sum_lt", say: []string{"with a sum below {k}"}, code: "a + b < {k}", ks: span(2, 9)},
		{name: "sum_even", say: []string{"with an even sum"}, code: "(a + b) % 2 == 0"},
		{name: "sum_odd", say: []string{"with an odd sum"}, code: "(a + b) % 2 == 1"},
		{name: "gap_gt", say: []string{"with a gap above {k}"}, code: "abs(a - b) > {k}", ks: span(1, 6)},
		{name: "gap_lt", say: []string{"with a gap below {k}"}, code: "abs(a - b) < {k}", ks: span(2, 6)},
	}
	pairMaps = []part{
		{name: "sums", say: []string{"the sums of"}, code: "a + b"},
		{name: "differences", say: []string{"the differences of"}, code: "b - a"},
		{name: "gaps", say: []string{"the gaps of"}, code: "abs(a - b)"},
		{name: "products", say: []string{"the products of"}, code: "a * b"},
		{name: "maxima", say: []string{"the maximums of"}, code: "max(a, b)"},
		{name: "minima", say: []string{"the minimums of"}, code: "min(a, b)"},
	}
	pairReducers = []part{
		{name: "sum", say: []string{"the sum of", "the total of"}, code: "sum(G)"},
		{name: "largest", say: []string{"the largest of", "the maximum of"}, code: "max(P, default=0)"},
		{name: "smallest", say: []string{"the smallest of", "the minimum of"}, code: "min(P, default=0)"},
		{name: "list", say: []string{"the list of"}, code: "L"},
		{name: "ascending", say: []string{"the sorted list of", "the ascending list of"}, code: "sorted(G)"},
		{name: "count", say: []string{"the number of", "the count of"}, code: "len(L)"},
	}
)

// drawPaired folds the neighbours in a list.
func drawPaired(r *rand.Rand) draft {
	filter, clause := maybe(r, 0.5, pairFilters), none
	if filter.empty() || r.IntN(4) == 0 {
		clause = maybe(r, 0.7, pairClauses)
	}
	mapping, reducer := pick(r, pairMaps), pick(r, pairReducers)
	element, the := mapping.code, "the"
	if reducer.name == "count" {
		mapping, element, the = none, "1", ""
	}
	var ending any = ""
	if reducer.name == "largest" || reducer.name == "smallest" {
		ending = ifNone
	}
	generator := loop(element, "a, b", "zip(xs, xs[1:])", conjunction(filter, clause))
	return draft{
		family: "paired",
		uses:   []use{filter, clause, mapping, reducer},
		domain: Numbers,
		say:    say(returns, reducer, mapping, the, filter, "adjacent pairs in xs", clause, ending),
		body:   "return " + expand(reducer.code, generator, "("+generator+")", "["+generator+"]"),
	}
}
