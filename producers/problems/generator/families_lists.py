"""Problems over lists of numbers other than folds."""

from domains import NUMBERS
from families_numbers import (
    ADJECTIVES, CLAUSES, COMMON_MAPS, DIGITS, FROM_LIST, IF_NONE, RETURNS)
from parts import NONE, Draft, Part, conjunction, expand, loop, maybe, phrase, pick, span

ASKS = ("Return True if", "Check whether", "Return whether")

# Predicates complete "is ...".
PREDICATES = (
    Part("even", "even", "x % 2 == 0"),
    Part("odd", "odd", "x % 2 == 1"),
    Part("positive", "positive", "x > 0"),
    Part("negative", "negative", "x < 0"),
    Part("gt", "greater than {k}|above {k}", "x > {k}", span(1, 8)),
    Part("ge", "at least {k}", "x >= {k}", span(2, 9)),
    Part("lt", "less than {k}|below {k}", "x < {k}", span(2, 9)),
    Part("le", "at most {k}", "x <= {k}", span(1, 8)),
    Part("div", "divisible by {k}", "x % {k} == 0", span(3, 5)),
)
QUANTIFIERS = (
    Part("every", "every", "all("),
    Part("some", "some", "any("),
    Part("no", "no", "not any("),
)

def draw_quantified(r):
    """Whether every, some or no number has a property: "True if every even number in xs is above 3"."""
    source, noun = (DIGITS, "digit") if r.below(4) == 0 else (FROM_LIST, "number")
    use = pick(r, [source.part])
    quantifier, adjective, predicate = pick(r, QUANTIFIERS), maybe(r, 0.5, ADJECTIVES), pick(r, PREDICATES)
    return Draft(
        "quantified", [use, quantifier, adjective, predicate], source.domain,
        phrase(ASKS, quantifier, adjective, noun, use, "is", predicate),
        "return " + quantifier.code + loop(predicate.code, "x", use.code, adjective.code) + ")")


REPLACEMENTS = (
    Part("zero", "replaced by 0|set to 0", "0"),
    Part("constant", "replaced by {k}|set to {k}", "{k}", span(2, 9)),
    Part("doubled", "doubled", "2 * x"),
    Part("squared", "squared", "x * x"),
    Part("negated", "negated", "-x"),
    Part("halved", "halved", "x // 2"),
    Part("increased", "increased by {k}", "x + {k}", span(2, 9)),
    Part("decreased", "decreased by {k}", "x - {k}", span(2, 9)),
)

def _pick_filter(r):
    """An adjective, a clause or, now and then, both."""
    kind = r.below(8)
    adjective = pick(r, ADJECTIVES) if kind < 4 else NONE
    clause = pick(r, CLAUSES) if kind > 2 else NONE
    return adjective, clause


def draw_replaced(r):
    """Some numbers changed, the others kept: "xs with every odd number doubled"."""
    adjective, clause = _pick_filter(r)
    replacement = pick(r, REPLACEMENTS)
    return Draft(
        "replaced", [adjective, clause, replacement], NUMBERS,
        phrase("Return xs with every", adjective, "number", clause, replacement),
        "return [" + replacement.code + " if " + conjunction(adjective, clause) + " else x for x in xs]")


FINDERS = (
    Part("first", "the first", "x in xs"),
    Part("last", "the last", "x in xs[::-1]"),
    Part("index", "the index of the first", "i, x in enumerate(xs)"),
)
FALLBACKS = (
    Part("minus_one", ", or -1 if there is none|, or -1 if none", "-1"),
    Part("zero", ", or 0 if there is none|, or 0 if none", "0"),
    Part("none", ", or None if there is none", "None"),
)

def draw_found(r):
    """A number with a property: "the first even number in xs, or -1"."""
    adjective, clause = _pick_filter(r)
    finder, fallback = pick(r, FINDERS), pick(r, FALLBACKS)
    result = "x"
    if finder.name == "index":
        result, fallback = "i", pick(r, FALLBACKS[:1])
    return Draft(
        "found", [finder, adjective, clause, fallback], NUMBERS,
        phrase(RETURNS[:1], finder, adjective, "number in xs", clause, fallback),
        "for " + finder.code + ":\n    if " + conjunction(adjective, clause) + ":\n        return " + result
        + "\nreturn " + fallback.code)


STOPPED_REDUCERS = (
    Part("sum", "the sum of|the total of", "0"),
    Part("count", "the number of|the count of", "0"),
    Part("list", "the list of", "[]"),
)


def draw_stopped(r):
    """A fold of the numbers before the first that has a property."""
    adjective, clause = _pick_filter(r)
    reducer = pick(r, STOPPED_REDUCERS)
    mapping, the, step = NONE, "", "1"
    if reducer.name != "count":
        mapping, the = maybe(r, 0.5, COMMON_MAPS), "the"
        step = mapping.code or "x"
    if reducer.name == "list":
        step = "[" + step + "]"
    return Draft(
        "stopped", [reducer, mapping, adjective, clause], NUMBERS,
        phrase(RETURNS, reducer, mapping, the, "numbers in xs before the first", adjective, "one", clause),
        "r = " + reducer.code + "\nfor x in xs:\n    if " + conjunction(adjective, clause) + ":\n        return r\n    r += " + step
        + "\nreturn r")


def draw_running(r):
    """The sums of all prefixes: "the running sums of the odd numbers in xs"."""
    adjective, mapping = maybe(r, 0.6, ADJECTIVES), maybe(r, 0.7, COMMON_MAPS)
    clause = NONE if adjective.name else maybe(r, 0.6, CLAUSES)
    body, indent = "r = []\nt = 0\nfor x in xs:\n", "    "
    condition = conjunction(adjective, clause)
    if condition:
        body, indent = body + "    if " + condition + ":\n", "        "
    body += indent + "t += " + (mapping.code or "x") + "\n" + indent + "r += [t]\nreturn r"
    return Draft(
        "running", [adjective, clause, mapping], NUMBERS,
        phrase(RETURNS, ("the running sums of", "the running totals of"), mapping, "the", adjective, "numbers in xs", clause),
        body)


PAIR_FILTERS = (
    Part("rising", "rising", "a < b"),
    Part("falling", "falling", "a > b"),
    Part("equal", "equal", "a == b"),
    Part("unequal", "unequal", "a != b"),
)
PAIR_CLAUSES = (
    Part("sum_gt", "with a sum above {k}", "a + b > {k}", span(2, 9)),
    Part("sum_lt", "with a sum below {k}", "a + b < {k}", span(2, 9)),
    Part("sum_even", "with an even sum", "(a + b) % 2 == 0"),
    Part("sum_odd", "with an odd sum", "(a + b) % 2 == 1"),
    Part("gap_gt", "with a gap above {k}", "abs(a - b) > {k}", span(1, 6)),
    Part("gap_lt", "with a gap below {k}", "abs(a - b) < {k}", span(2, 6)),
)
PAIR_MAPS = (
    Part("sums", "the sums of", "a + b"),
    Part("differences", "the differences of", "b - a"),
    Part("gaps", "the gaps of", "abs(a - b)"),
    Part("products", "the products of", "a * b"),
    Part("maxima", "the maximums of", "max(a, b)"),
    Part("minima", "the minimums of", "min(a, b)"),
)
PAIR_REDUCERS = (
    Part("sum", "the sum of|the total of", "sum(G)"),
    Part("largest", "the largest of|the maximum of", "max(P, default=0)"),
    Part("smallest", "the smallest of|the minimum of", "min(P, default=0)"),
    Part("list", "the list of", "L"),
    Part("ascending", "the sorted list of|the ascending list of", "sorted(G)"),
    Part("count", "the number of|the count of", "len(L)"),
)

def draw_paired(r):
    """A fold of the neighbours in a list: "the gaps of the rising adjacent pairs in xs"."""
    pairs, clause = maybe(r, 0.5, PAIR_FILTERS), NONE
    if not pairs.name or r.below(4) == 0:
        clause = maybe(r, 0.7, PAIR_CLAUSES)
    mapping, reducer = pick(r, PAIR_MAPS), pick(r, PAIR_REDUCERS)
    element, the = mapping.code, "the"
    if reducer.name == "count":
        mapping, element, the = NONE, "1", ""
    ending = IF_NONE if reducer.name in ("largest", "smallest") else ""
    generator = loop(element, "a, b", "zip(xs, xs[1:])", conjunction(pairs, clause))
    return Draft(
        "paired", [pairs, clause, mapping, reducer], NUMBERS,
        phrase(RETURNS, reducer, mapping, the, pairs, "adjacent pairs in xs", clause, ending),
        "return " + expand(reducer.code, generator))
