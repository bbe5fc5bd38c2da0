"""Problems that join two quantities or choose between two results."""

from domains import NUMBERS, TEXT, TWO, WHOLE
from families_lists import ASKS
from families_numbers import ADJECTIVES, CLAUSES, REDUCERS, RETURNS, reduce
from families_texts import KINDS
from parts import NONE, Draft, Part, conjunction, maybe, phrase, pick, span


def _draw_quantity(r):
    """A sum or a count over xs, or its length, as uses, phrase and code."""
    adjective = maybe(r, 0.7, ADJECTIVES)
    clause = NONE if adjective.name else maybe(r, 0.7, CLAUSES)
    reducer = pick(r, [part for part in REDUCERS if part.name in ("sum", "count")])
    the = "" if reducer.name == "count" else "the"
    return (
        [reducer, adjective, clause],
        phrase(reducer, the, adjective, "numbers in xs", clause),
        reduce(reducer.code, "x", "xs", conjunction(adjective, clause), is_list=True))


def _draw_character_count(r):
    kind = pick(r, KINDS)
    return [kind], phrase("the number of", kind, "in s"), "len([c for c in s if " + kind.code + "])"


JOINERS = (
    Part("plus", "plus", " + "),
    Part("minus", "minus", " - "),
    Part("times", "multiplied by", " * "),
)
COMPARISONS = (
    Part("greater", "is greater than|exceeds", " > "),
    Part("less", "is less than", " < "),
    Part("equal", "equals", " == "),
    Part("at_least", "is at least", " >= "),
)

def _draw_two_quantities(r, family, domain, draw):
    left, left_phrase, left_code = draw(r)
    right, right_phrase, right_code = draw(r)
    while left_code == right_code:
        right, right_phrase, right_code = draw(r)
    joiner, opening = pick(r, JOINERS), RETURNS[:1]
    if r.below(5) < 2:
        joiner, opening = pick(r, COMPARISONS), ASKS
    return Draft(
        family, [joiner] + left + right, domain,
        phrase(opening, left_phrase, joiner, right_phrase), "return " + left_code + joiner.code + right_code)


def draw_combined(r):
    """ "the sum of the even numbers minus the length of xs" """
    return _draw_two_quantities(r, "combined", NUMBERS, _draw_quantity)


def draw_tallied(r):
    """ "the number of vowels minus the number of digits" """
    return _draw_two_quantities(r, "tallied", TEXT, _draw_character_count)


LIST_CONDITIONS = (
    Part("longer", "xs has more than {k} numbers|xs is longer than {k}", "len(xs) > {k}", span(1, 4)),
    Part("shorter", "xs has less than {k} numbers|xs is shorter than {k}", "len(xs) < {k}", span(2, 5)),
    Part("contains", "xs contains {k}", "{k} in xs", span(1, 9)),
    Part("lacks", "xs does not contain {k}", "{k} not in xs", span(1, 9)),
    Part("sum_even", "the sum of xs is even", "sum(xs) % 2 == 0"),
    Part("sum_gt", "the sum of xs is above {k}", "sum(xs) > {k}", span(2, 9)),
    Part("sorted", "xs is sorted", "xs == sorted(xs)"),
    Part("duplicates", "xs has duplicates", "len(set(xs)) < len(xs)"),
)
INT_RESULTS = (
    Part("sum", "the sum of xs", "sum(xs)"),
    Part("length", "the length of xs", "len(xs)"),
    Part("largest", "the largest number in xs or 0", "max(xs, default=0)"),
    Part("smallest", "the smallest number in xs or 0", "min(xs, default=0)"),
    Part("constant", "{k}", "{k}", span(0, 9)),
)
LIST_RESULTS = (
    Part("same", "xs", "xs"),
    Part("reversed", "xs reversed", "xs[::-1]"),
    Part("ascending", "xs sorted", "sorted(xs)"),
    Part("head", "the first {k} of xs", "xs[:{k}]", span(2, 4)),
    Part("tail", "the last {k} of xs", "xs[-{k}:]", span(2, 4)),
    Part("doubled", "xs doubled", "[2 * x for x in xs]"),
    Part("empty", "an empty list", "[]"),
)

def _pick_two(r, parts):
    """Two uses that differ, if only in their constants."""
    first, second = pick(r, parts), pick(r, parts)
    while first.code == second.code:
        second = pick(r, parts)
    return first, second


def _phrase_choice(condition, then, otherwise):
    return phrase("If", condition, ", return", then, ", otherwise return", otherwise)


def draw_branched(r):
    """ "if xs is sorted, its length, otherwise 0" """
    condition = pick(r, LIST_CONDITIONS)
    then, otherwise = _pick_two(r, LIST_RESULTS if r.below(2) == 0 else INT_RESULTS)
    return Draft(
        "branched", [condition, then, otherwise], NUMBERS, _phrase_choice(condition, then, otherwise),
        "if " + condition.code + ":\n    return " + then.code + "\nreturn " + otherwise.code)


WHOLE_CONDITIONS = (
    Part("even", "n is even", "n % 2 == 0"),
    Part("odd", "n is odd", "n % 2 == 1"),
    Part("positive", "n is positive", "n > 0"),
    Part("negative", "n is negative", "n < 0"),
    Part("gt", "n is greater than {k}|n is above {k}", "n > {k}", span(1, 9)),
    Part("lt", "n is less than {k}|n is below {k}", "n < {k}", span(2, 9)),
    Part("ge", "n is at least {k}", "n >= {k}", span(2, 9)),
    Part("div", "n is divisible by {k}", "n % {k} == 0", span(3, 5)),
)
WHOLE_RESULTS = (
    Part("same", "n", "n"),
    Part("plus", "n plus {k}", "n + {k}", span(2, 9)),
    Part("minus", "n minus {k}", "n - {k}", span(2, 9)),
    Part("times", "n times {k}", "n * {k}", span(2, 5)),
    Part("squared", "n squared", "n * n"),
    Part("half", "the half of n", "n // 2"),
    Part("mod", "the remainder of n by {k}", "n % {k}", span(3, 7)),
    Part("opposite", "minus n", "-n"),
    Part("abs", "the absolute value of n", "abs(n)"),
    Part("constant", "{k}", "{k}", span(0, 9)),
)
TWO_CONDITIONS = (
    Part("greater", "a is greater than b", "a > b"),
    Part("less", "a is less than b", "a < b"),
    Part("equal", "a equals b", "a == b"),
    Part("sum_even", "the sum of a and b is even", "(a + b) % 2 == 0"),
    Part("both_positive", "both a and b are positive", "a > 0 and b > 0"),
    Part("both_even", "both a and b are even", "a % 2 == 0 and b % 2 == 0"),
    Part("sum_gt", "the sum of a and b is above {k}", "a + b > {k}", span(2, 9)),
)
TWO_RESULTS = (
    Part("first", "a", "a"),
    Part("second", "b", "b"),
    Part("sum", "a plus b", "a + b"),
    Part("difference", "a minus b", "a - b"),
    Part("product", "a times b", "a * b"),
    Part("larger", "the larger of a and b", "max(a, b)"),
    Part("smaller", "the smaller of a and b", "min(a, b)"),
    Part("gap", "the gap between a and b", "abs(a - b)"),
    Part("constant", "{k}", "{k}", span(0, 9)),
)

def _draw_ternary(r, family, domain, conditions, results):
    condition = pick(r, conditions)
    then, otherwise = _pick_two(r, results)
    return Draft(
        family, [condition, then, otherwise], domain, _phrase_choice(condition, then, otherwise),
        "return " + then.code + " if " + condition.code + " else " + otherwise.code)


def draw_chosen(r):
    """ "if n is even, n squared, otherwise n plus 1" """
    return _draw_ternary(r, "chosen", WHOLE, WHOLE_CONDITIONS, WHOLE_RESULTS)


def draw_matched(r):
    """ "if a is greater than b, a minus b, otherwise 0" """
    return _draw_ternary(r, "matched", TWO, TWO_CONDITIONS, TWO_RESULTS)
