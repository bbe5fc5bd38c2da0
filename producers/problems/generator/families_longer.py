"""Longer compositions of the parts of the other families, for the harder set.

Every part is one of the default set, with the same words and the same code. A
family that has the name of one of the default set makes its longest compositions,
with the same skeletons, so that the same of them are held out.
"""

from domains import NUMBERS, TEXT, WORDS
from families_choices import INT_RESULTS, JOINERS, LIST_CONDITIONS
from families_lists import (
    FALLBACKS, FINDERS, PAIR_CLAUSES, PAIR_FILTERS, PAIR_MAPS, PAIR_REDUCERS, REPLACEMENTS, STOPPED_REDUCERS)
from families_numbers import (
    ADJECTIVES, CLAUSES, COMMON_MAPS, FROM_LIST, IF_NONE, MAPS, REDUCERS, RETURNS, SUBLISTS, reduce)
from families_texts import (
    CHARACTER_MAPS, KINDS, TEXT_ENDINGS, TEXT_REDUCERS, TEXT_SOURCES, WORD_CLAUSES)
from parts import NONE, Draft, conjunction, expand, loop, maybe, phrase, pick

NUMBER_REDUCERS = REDUCERS[:5]  # those that return a number


def _but(parts, name):
    return [part for part in parts if part.name != name]


def _ending(reducer):
    return IF_NONE if "default" in reducer.code else ""


def _pick_source(r):
    """The list or, twice as often, a part of it."""
    return pick(r, [(r.choice(SUBLISTS) if r.below(3) else FROM_LIST).part])


def _pick_clauses(r, clauses):
    """Two clauses that differ by more than their constants."""
    first, second = pick(r, clauses), pick(r, clauses)
    while first.name == second.name:
        second = pick(r, clauses)
    return first, second


def draw_long_fold(r):
    """A fold with every part."""
    use, adjective, clause, mapping = _pick_source(r), pick(r, ADJECTIVES), pick(r, CLAUSES), pick(r, MAPS)
    reducer = pick(r, _but(REDUCERS, "count"))
    return Draft(
        "fold", [use, adjective, clause, mapping, reducer], NUMBERS,
        phrase(RETURNS, reducer, mapping, "the", adjective, "numbers", use, clause, _ending(reducer)),
        "return " + reduce(reducer.code, mapping.code, use.code, conjunction(adjective, clause), is_list=True))


def draw_long_paired(r):
    """A fold of adjacent pairs with every part."""
    pairs, clause, mapping = pick(r, PAIR_FILTERS), pick(r, PAIR_CLAUSES), pick(r, PAIR_MAPS)
    reducer = pick(r, _but(PAIR_REDUCERS, "count"))
    return Draft(
        "paired", [pairs, clause, mapping, reducer], NUMBERS,
        phrase(RETURNS, reducer, mapping, "the", pairs, "adjacent pairs in xs", clause, _ending(reducer)),
        "return " + expand(reducer.code, loop(mapping.code, "a, b", "zip(xs, xs[1:])", conjunction(pairs, clause))))


def draw_long_stopped(r):
    """A fold up to a number with two properties."""
    reducer, mapping = pick(r, _but(STOPPED_REDUCERS, "count")), pick(r, COMMON_MAPS)
    adjective, clause = pick(r, ADJECTIVES), pick(r, CLAUSES)
    step = "[" + mapping.code + "]" if reducer.name == "list" else mapping.code
    return Draft(
        "stopped", [reducer, mapping, adjective, clause], NUMBERS,
        phrase(RETURNS, reducer, mapping, "the numbers in xs before the first", adjective, "one", clause),
        "r = " + reducer.code + "\nfor x in xs:\n    if " + conjunction(adjective, clause) + ":\n        return r\n    r += " + step
        + "\nreturn r")


def draw_long_running(r):
    """Running sums with two filters."""
    adjective, clause, mapping = pick(r, ADJECTIVES), pick(r, CLAUSES), pick(r, COMMON_MAPS)
    return Draft(
        "running", [adjective, clause, mapping], NUMBERS,
        phrase(RETURNS, ("the running sums of", "the running totals of"), mapping, "the", adjective, "numbers in xs", clause),
        "r = []\nt = 0\nfor x in xs:\n    if " + conjunction(adjective, clause) + ":\n        t += " + mapping.code
        + "\n        r += [t]\nreturn r")


def _pick_spelling(r):
    return pick(r, TEXT_SOURCES[1:]), pick(r, KINDS), pick(r, CHARACTER_MAPS), pick(r, _but(TEXT_REDUCERS, "joined"))


def draw_long_spelled(r):
    """The characters of a kind in a part of s, with every part."""
    source, kind, mapping, reducer = _pick_spelling(r)
    return Draft(
        "spelled", [source, kind, mapping, reducer], TEXT, phrase(RETURNS, "the", kind, source, mapping, reducer),
        "return " + expand(reducer.code, loop(mapping.code, "c", source.code, kind.code)))


def draw_trimmed(r):
    """The same with one step more: "the vowels of s, in uppercase, sorted, and reversed"."""
    source, kind, mapping, reducer = _pick_spelling(r)
    while reducer.name == "listed":
        reducer = _pick_spelling(r)[3]
    ending = pick(r, TEXT_ENDINGS)
    return Draft(
        "trimmed", [source, kind, mapping, reducer, ending], TEXT, phrase(RETURNS, "the", kind, source, mapping, reducer, ending),
        "return " + expand(reducer.code, loop(mapping.code, "c", source.code, kind.code)) + ending.code)


def draw_bounded(r):
    """A fold with two clauses: "the sum of the numbers in xs above 3 and not divisible by 5"."""
    use, reducer = _pick_source(r), pick(r, REDUCERS)
    first, second = _pick_clauses(r, CLAUSES)
    mapping, the = NONE, ""
    if reducer.name != "count":
        mapping, the = maybe(r, 0.5, MAPS), "the"
    return Draft(
        "bounded", [use, first, second, mapping, reducer], NUMBERS,
        phrase(RETURNS, reducer, mapping, the, "numbers", use, first, "and", second, _ending(reducer)),
        "return " + reduce(reducer.code, mapping.code or "x", use.code, conjunction(first, second), is_list=True))


def _draw_fold(r, use, mapped):
    """A fold that returns a number, as uses, phrase and code."""
    reducer, adjective = pick(r, NUMBER_REDUCERS), maybe(r, 0.6, ADJECTIVES)
    clause = NONE if adjective.name else maybe(r, 0.6, CLAUSES)
    mapping = pick(r, MAPS) if mapped and reducer.name != "count" else NONE
    the = "" if reducer.name == "count" else "the"
    return (
        [use, reducer, mapping, adjective, clause],
        phrase(reducer, mapping, the, adjective, "numbers", use, clause),
        reduce(reducer.code, mapping.code or "x", use.code, conjunction(adjective, clause), is_list=True))


def _join(r, family, domain, quantities):
    """Two quantities with a joiner between them."""
    (left, left_phrase, left_code), (right, right_phrase, right_code) = quantities
    joiner = pick(r, JOINERS)
    return Draft(
        family, [joiner] + left + right, domain,
        phrase("Return", left_phrase, joiner, right_phrase), "return " + left_code + joiner.code + right_code)


def draw_joined(r):
    """Two folds: "the largest of the numbers in xs after the first 2 minus the sum of the odd numbers in xs"."""
    return _join(r, "joined", NUMBERS, [_draw_fold(r, _pick_source(r), False) for _ in range(2)])


def draw_mapped(r):
    """Two folds, the first with a map."""
    whole = pick(r, [FROM_LIST.part])
    return _join(r, "mapped", NUMBERS, [_draw_fold(r, whole, mapped) for mapped in (True, False)])


def _draw_character_count(r):
    source, kind = pick(r, TEXT_SOURCES), pick(r, KINDS)
    return [source, kind], phrase("the number of", kind, source), "len([c for c in " + source.code + " if " + kind.code + "])"


def draw_counted(r):
    """Two counts: "the number of vowels among the first 3 of s plus the number of digits of s"."""
    return _join(r, "counted", TEXT, [_draw_character_count(r) for _ in range(2)])


def _draw_word_count(r):
    clause = pick(r, WORD_CLAUSES)
    return [clause], phrase("the number of words in s", clause), "len([w for w in s.split() if " + clause.code + "])"


def draw_weighed(r):
    """Two counts of words: "the number of words in s longer than 3 minus the number of words in s without 'e'"."""
    return _join(r, "weighed", WORDS, [_draw_word_count(r) for _ in range(2)])


def draw_decided(r):
    """A branch to a fold: "if xs is sorted, the sum of the even numbers in xs, otherwise 0"."""
    condition, otherwise = pick(r, LIST_CONDITIONS), pick(r, INT_RESULTS)
    uses, said, code = _draw_fold(r, pick(r, [FROM_LIST.part]), False)
    return Draft(
        "decided", [condition] + uses + [otherwise], NUMBERS,
        phrase("If", condition, ", return", said, ", otherwise return", otherwise),
        "if " + condition.code + ":\n    return " + code + "\nreturn " + otherwise.code)


def draw_sought(r):
    """The first or last number with three properties."""
    finder, adjective, fallback = pick(r, FINDERS), pick(r, ADJECTIVES), pick(r, FALLBACKS[:1])
    first, second = _pick_clauses(r, CLAUSES)
    return Draft(
        "sought", [finder, adjective, first, second, fallback], NUMBERS,
        phrase("Return", finder, adjective, "number in xs", first, "and", second, fallback),
        "for " + finder.code + ":\n    if " + conjunction(adjective, first, second) + ":\n        return "
        + ("i" if finder.name == "index" else "x") + "\nreturn " + fallback.code)


def draw_exchanged(r):
    """Numbers with two properties changed, the others kept."""
    first, second = _pick_clauses(r, CLAUSES)
    replacement = pick(r, REPLACEMENTS)
    return Draft(
        "exchanged", [first, second, replacement], NUMBERS,
        phrase("Return xs with every number", first, "and", second, replacement),
        "return [" + replacement.code + " if " + conjunction(first, second) + " else x for x in xs]")
