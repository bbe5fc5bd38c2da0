package grammar

import "math/rand/v2"

// quantity is a number computed from an input, as a noun phrase and an
// expression.
type quantity struct {
	uses []use
	say  Phrase
	code string
}

// drawQuantity makes a sum or a count over xs, or its length.
func drawQuantity(r *rand.Rand) quantity {
	adjective := maybe(r, 0.7, adjectives)
	clause := none
	if adjective.empty() {
		clause = maybe(r, 0.7, clauses)
	}
	reducer := pick(r, []part{reducers[0], reducers[3]})
	the := "the"
	if reducer.name == "count" {
		the = ""
	}
	return quantity{
		uses: []use{reducer, adjective, clause},
		say:  say(reducer, the, adjective, "numbers in xs", clause),
		code: reduce(reducer.code, "x", "xs", conjunction(adjective, clause), fromList),
	}
}

// drawCharacterCount counts the characters of a kind.
func drawCharacterCount(r *rand.Rand) quantity {
	kind := pick(r, kinds)
	return quantity{
		uses: []use{kind},
		say:  say("the number of", kind, "in s"),
		code: "len([c for c in s if " + kind.source() + "])",
	}
}

var (
	joiners = []part{
		{name: "plus", say: []string{"plus"}, code: " + "},
		{name: "minus", say: []string{"minus"}, code: " - "},
		{name: "times", say: []string{"multiplied by"}, code: " * "},
	}
	comparisons = []part{
		{name: "greater", say: []string{"is greater than", "exceeds"}, code: " > "},
		{name: "less", say: []string{"is less than"}, code: " < "},
		{name: "equal", say: []string{"equals"}, code: " == "},
		{name: "at_least", say: []string{"is at least"}, code: " >= "},
	}
)

// drawCombined joins or compares two quantities.
func drawCombined(r *rand.Rand, family string, domain *Domain, quantityOf func(*rand.Rand) quantity) draft {
	left, right := quantityOf(r), quantityOf(r)
	for left.code == right.code {
		right = quantityOf(r)
	}
	joiner, opening := pick(r, joiners), returns[:1]
	if r.IntN(5) < 2 {
		joiner, opening = pick(r, comparisons), asks
	}
	return draft{
		family: family,
		uses:   append(append([]use{joiner}, left.uses...), right.uses...),
		domain: domain,
		say:    say(opening, left.say, joiner, right.say),
		body:   "return " + left.code + joiner.code + right.code,
	}
}

func drawCombinedNumbers(r *rand.Rand) draft {
	return drawCombined(r, "combined", Numbers, drawQuantity)
}

func drawCombinedCharacters(r *rand.Rand) draft {
	return drawCombined(r, "tallied", Text, drawCharacterCount)
}

var (
	listConditions = []part{
		{name: "longer", say: []string{"xs has more than {k} numbers", "xs is longer than {k}"}, code: "len(xs) > {k}", ks: span(1, 4)},
		{name: "shorter", say: []string{"xs has less than {k} numbers", "xs is shorter than {k}"}, code: "len(xs) < {k}", ks: span(2, 5)},
		{name: "contains", say: []string{"xs contains {k}"}, code: "{k} in xs", ks: span(1, 9)},
		{name: "lacks", say: []string{"xs does not contain {k}"}, code: "{k} not in xs", ks: span(1, 9)},
		{name: "sum_even", say: []string{"the sum of xs is even"}, code: "sum(xs) % 2 == 0"},
		{name: "sum_gt", say: []string{"the sum of xs is above {k}"}, code: "sum(xs) > {k}", ks: span(2, 9)},
		{name: "sorted", say: []string{"xs is sorted"}, code: "xs == sorted(xs)"},
		{name: "duplicates", say: []string{"xs has duplicates"}, code: "len(set(xs)) < len(xs)"},
	}
	intResults = []part{
		{name: "sum", say: []string{"the sum of xs"}, code: "sum(xs)"},
		{name: "length", say: []string{"the length of xs"}, code: "len(xs)"},
		{name: "largest", say: []string{"the largest number in xs or 0"}, code: "max(xs, default=0)"},
		{name: "smallest", say: []string{"the smallest number in xs or 0"}, code: "min(xs, default=0)"},
		{name: "constant", say: []string{"{k}"}, code: "{k}", ks: span(0, 9)},
	}
	listResults = []part{
		{name: "same", say: []string{"xs"}, code: "xs"},
		{name: "reversed", say: []string{"xs reversed"}, code: "xs[::-1]"},
		{name: "ascending", say: []string{"xs sorted"}, code: "sorted(xs)"},
		{name: "head", say: []string{"the first {k} of xs"}, code: "xs[:{k}]", ks: span(2, 4)},
		{name: "tail", say: []string{"the last {k} of xs"}, code: "xs[-{k}:]", ks: span(2, 4)},
		{name: "doubled", say: []string{"xs doubled"}, code: "[2 * x for x in xs]"},
		{name: "empty", say: []string{"an empty list"}, code: "[]"},
	}
)

// pickTwo picks two parts that differ, if only in their constants.
func pickTwo(r *rand.Rand, parts []part) (use, use) {
	first, second := pick(r, parts), pick(r, parts)
	for first.source() == second.source() {
		second = pick(r, parts)
	}
	return first, second
}

// drawBranched returns one of two results.
func drawBranched(r *rand.Rand) draft {
	condition := pick(r, listConditions)
	results := intResults
	if r.IntN(2) == 0 {
		results = listResults
	}
	then, otherwise := pickTwo(r, results)
	return draft{
		family: "branched",
		uses:   []use{condition, then, otherwise},
		domain: Numbers,
		say:    say("If", condition, ", return", then, ", otherwise return", otherwise),
		body:   "if " + condition.source() + ":\n    return " + then.source() + "\nreturn " + otherwise.source(),
	}
}

var (
	wholeConditions = []part{
		{name: "even", say: []string{"n is even"}, code: "n % 2 == 0"},
		{name: "odd", say: []string{"n is odd"}, code: "n % 2 == 1"},
		{name: "positive", say: []string{"n is positive"}, code: "n > 0"},
		{name: "negative", say: []string{"n is negative"}, code: "n < 0"},
		{name: "gt", say: []string{"n is greater than {k}", "n is above {k}"}, code: "n > {k}", ks: span(1, 9)},
		{name: "lt", say: []string{"n is less than {k}", "n is below {k}"}, code: "n < {k}", ks: span(2, 9)},
		{name: "ge", say: []string{"n is at least {k}"}, code: "n >= {k}", ks: span(2, 9)},
		{name: "div", say: []string{"n is divisible by {k}"}, code: "n % {k} == 0", ks: span(3, 5)},
	}
	wholeResults = []part{
		{name: "same", say: []string{"n"}, code: "n"},
		{name: "plus", say: []string{"n plus {k}"}, code: "n + {k}", ks: span(2, 9)},
		{name: "minus", say: []string{"n minus {k}"}, code: "n - {k}", ks: span(2, 9)},
		{name: "times", say: []string{"n times {k}"}, code: "n * {k}", ks: span(2, 5)},
		{name: "squared", say: []string{"n squared"}, code: "n * n"},
		{name: "half", say: []string{"the half of n"}, code: "n // 2"},
		{name: "mod", say: []string{"the remainder of n by {k}"}, code: "n % {k}", ks: span(3, 7)},
		{name: "opposite", say: []string{"minus n"}, code: "-n"},
		{name: "abs", say: []string{"the absolute value of n"}, code: "abs(n)"},
		{name: "constant", say: []string{"{k}"}, code: "{k}", ks: span(0, 9)},
	}
	twoConditions = []part{
		{name: "greater", say: []string{"a is greater than b"}, code: "a > b"},
		{name: "less", say: []string{"a is less than b"}, code: "a < b"},
		{name: "equal", say: []string{"a equals b"}, code: "a == b"},
		{name: "sum_even", say: []string{"the sum of a and b is even"}, code: "(a + b) % 2 == 0"},
		{name: "both_positive", say: []string{"both a and b are positive"}, code: "a > 0 and b > 0"},
		{name: "both_even", say: []string{"both a and b are even"}, code: "a % 2 == 0 and b % 2 == 0"},
		{name: "sum_gt", say: []string{"the sum of a and b is above {k}"}, code: "a + b > {k}", ks: span(2, 9)},
	}
	twoResults = []part{
		{name: "first", say: []string{"a"}, code: "a"},
		{name: "second", say: []string{"b"}, code: "b"},
		{name: "sum", say: []string{"a plus b"}, code: "a + b"},
		{name: "difference", say: []string{"a minus b"}, code: "a - b"},
		{name: "product", say: []string{"a times b"}, code: "a * b"},
		{name: "larger", say: []string{"the larger of a and b"}, code: "max(a, b)"},
		{name: "smaller", say: []string{"the smaller of a and b"}, code: "min(a, b)"},
		{name: "gap", say: []string{"the gap between a and b"}, code: "abs(a - b)"},
		{name: "constant", say: []string{"{k}"}, code: "{k}", ks: span(0, 9)},
	}
)

func drawChosen(r *rand.Rand) draft {
	return drawTernary(r, "chosen", Whole, wholeConditions, wholeResults)
}

func drawMatched(r *rand.Rand) draft {
	return drawTernary(r, "matched", Two, twoConditions, twoResults)
}

func drawTernary(r *rand.Rand, family string, domain *Domain, conditions, results []part) draft {
	condition := pick(r, conditions)
	then, otherwise := pickTwo(r, results)
	return draft{
		family: family,
		uses:   []use{condition, then, otherwise},
		domain: domain,
		say:    say("If", condition, ", return", then, ", otherwise return", otherwise),
		body:   "return " + then.source() + " if " + condition.source() + " else " + otherwise.source(),
	}
}
