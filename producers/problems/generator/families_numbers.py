"""Folds: "the sum of the squares of the even numbers in xs above 3".

A fold has a source of numbers, up to two filters, a map and a reducer.
"""

from typing import NamedTuple

from domains import COUNT, NUMBERS, TWO, WHOLE, WORDS, Domain
from parts import NONE, Draft, Part, conjunction, expand, loop, maybe, phrase, pick, span

RETURNS = ("Return", "Compute", "Return")
IF_NONE = (", or 0 if there are none", ", or 0 if none")

ADJECTIVES = (
    Part("even", "even", "x % 2 == 0"),
    Part("odd", "odd", "x % 2 == 1"),
    Part("positive", "positive", "x > 0"),
    Part("negative", "negative", "x < 0"),
    Part("nonzero", "nonzero", "x != 0"),
)
# Multiplicities need the whole list at hand.
MULTIPLICITIES = (
    Part("repeated", "repeated", "xs.count(x) > 1"),
    Part("unrepeated", "unrepeated", "xs.count(x) == 1"),
)
CLAUSES = (
    Part("gt", "greater than {k}|above {k}", "x > {k}", span(1, 8)),
    Part("ge", "of at least {k}", "x >= {k}", span(2, 9)),
    Part("lt", "less than {k}|below {k}", "x < {k}", span(2, 9)),
    Part("le", "of at most {k}", "x <= {k}", span(1, 8)),
    Part("div", "divisible by {k}", "x % {k} == 0", span(3, 5)),
    Part("ndiv", "not divisible by {k}", "x % {k} != 0", span(3, 5)),
    Part("ne", "other than {k}|not equal to {k}", "x != {k}", span(1, 9)),
)
MAPS = (
    Part("square", "the squares of", "x * x"),
    Part("double", "the doubles of", "2 * x"),
    Part("abs", "the absolute values of", "abs(x)"),
    Part("opposite", "the opposites of", "-x"),
    Part("half", "the halves of", "x // 2"),
    Part("mod", "the remainders by {k} of", "x % {k}", span(3, 5)),
    Part("plus", "{k} plus each of", "x + {k}", span(2, 9)),
    Part("minus", "{k} minus each of", "{k} - x", span(2, 9)),
    Part("times", "{k} times each of", "{k} * x", span(3, 5)),
    Part("gap", "the distances from {k} to", "abs(x - {k})", span(2, 9)),
)
COMMON_MAPS = MAPS[:5]  # those without a constant

# The code of a reducer has places for iterables: see expand.
REDUCERS = (
    Part("sum", "the sum of|the total of", "sum(G)"),
    Part("largest", "the largest of|the maximum of", "max(P, default=0)"),
    Part("smallest", "the smallest of|the minimum of", "min(P, default=0)"),
    Part("count", "the number of|the count of", "len(L)"),
    Part("distinct", "the number of different values among", "len(set(G))"),
    Part("list", "the list of", "L"),
    Part("ascending", "the sorted list of|the ascending list of", "sorted(G)"),
    Part("descending", "the descending list of", "sorted(P, reverse=True)"),
    Part("reversed", "the reversed list of", "L[::-1]"),
    Part("unique", "the sorted different values among", "sorted(set(G))"),
    Part("head", "the first {k} of", "L[:{k}]", span(2, 3)),
    Part("tail", "the last {k} of", "L[-{k}:]", span(2, 3)),
)


class Source(NamedTuple):
    """Where numbers come from."""

    part: Part
    domain: Domain
    noun: str
    where: str = ""  # a condition of its own
    is_list: bool = False


FROM_LIST = Source(Part("xs", "in xs", "xs"), NUMBERS, "numbers", is_list=True)
SUBLISTS = [
    Source(part, NUMBERS, "numbers", is_list=True)
    for part in (
        Part("first", "among the first {k} of xs", "xs[:{k}]", span(2, 4)),
        Part("last", "among the last {k} of xs", "xs[-{k}:]", span(2, 4)),
        Part("after", "in xs after the first {k}", "xs[{k}:]", span(2, 3)),
        Part("even_index", "at even indexes of xs", "xs[::2]"),
        Part("odd_index", "at odd indexes of xs", "xs[1::2]"),
    )
]
DIGITS = Source(Part("digits", "of n", "map(int, str(abs(n)))"), WHOLE, "digits")
COUNTERS = [
    DIGITS,
    Source(Part("upto", "from 1 to n", "range(1, n + 1)"), COUNT, "numbers"),
    Source(Part("divisors", "of n", "range(1, n + 1)"), COUNT, "divisors", "n % x == 0"),
    Source(Part("between", "from a to b", "range(a, b + 1)"), TWO, "numbers"),
    Source(Part("word_lengths", "in s", "map(len, s.split())"), WORDS, "word lengths"),
]


def _pick_source(r):
    """A source and its use. Half of them are the plain list."""
    source, p = FROM_LIST, r.fraction()
    if p < 0.25:
        source = r.choice(SUBLISTS)
    elif p < 0.50:
        source = r.choice(COUNTERS)
    return source, pick(r, [source.part])


def draw_fold(r):
    source, use = _pick_source(r)
    adjective = maybe(r, 0.55, ADJECTIVES)
    if use.name == "xs" and r.below(12) == 0:
        adjective = pick(r, MULTIPLICITIES)
    clause = maybe(r, 0.4, CLAUSES)
    reducer = pick(r, REDUCERS)
    mapping = maybe(r, 0.6, MAPS) if reducer.name != "count" else NONE
    if reducer.name == "list" and use.name == "xs" and adjective == clause == mapping == NONE:
        mapping = pick(r, MAPS)  # the list of the numbers in xs is xs
    condition = " and ".join(filter(None, (source.where, conjunction(adjective, clause))))
    ending = IF_NONE if reducer.name in ("largest", "smallest") else ""
    the = "" if reducer.name == "count" else "the"
    return Draft(
        "fold", [use, adjective, clause, mapping, reducer], source.domain,
        phrase(RETURNS, reducer, mapping, the, adjective, source.noun, use, clause, ending),
        "return " + reduce(reducer.code, mapping.code or "x", use.code, condition, source.is_list))


def reduce(code, element, iterable, condition, is_list):
    """The code of a reducer applied to the elements of an iterable.

    Without a map and a condition that is the iterable itself.
    """
    generator = loop(element, "x", iterable, condition)
    if element != "x" or condition:
        return expand(code, generator)
    return expand(code, iterable, followed=iterable, items=iterable if is_list else "[" + generator + "]")
