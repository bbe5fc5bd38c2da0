"""Domains: the kinds of input that built-in problems take.

A domain has the parameters of solve and

probes  inputs that tell behaviours apart, the most telling first
edges   inputs that every set of golden tests has
near    makes inputs at and around a constant of the program
draw    makes a random input; a simple one is easy to work out by hand:
        empty, a single item, a small number
"""

from typing import Callable, NamedTuple


class Domain(NamedTuple):
    name: str
    params: tuple
    probes: list
    edges: list
    near: Callable
    draw: Callable


def _lists(*texts):
    return [([int(number) for number in text.split()],) for text in texts]


def _single(*values):
    return [(value,) for value in values]


def _pairs(*values):
    return list(zip(values[::2], values[1::2]))


def _draw_length(r, simple, spread):
    length = r.below(2)
    return length if simple else 2 + r.below(spread)


def _draw_list(r, simple):
    numbers = []
    for i in range(_draw_length(r, simple, 4)):
        if i > 0 and r.below(6) == 0:  # duplicates and ties
            numbers.append(numbers[r.below(i)])
            continue
        n = r.below(10)
        numbers.append(-n if r.below(4) == 0 else n)
    return (numbers,)


_ALPHABETS = ("aeiou", "bcdfghklmnprst", "aeiou", "bcdt", "AEIOU", "BCDKT", "123456789", " ")


def _draw_text(r, simple):
    length = _draw_length(r, simple, 4)
    return ("".join(r.choice(r.choice(_ALPHABETS)) for _ in range(length)),)


_VOCABULARY = "a be cat eat Egg tea old Owl tree bean ten on Ice to apple no bat it seven two up Tin area nine abc".split()


def _draw_words(r, simple):
    count = _draw_length(r, simple, 2)
    return (" ".join(r.choice(_VOCABULARY) for _ in range(count)),)


def _draw_whole(r, simple):
    n = r.below(10)
    if not simple:
        n = 10 + r.below(90)
        if r.below(3) == 0:
            n = 100 + r.below(400)
    return (-n if r.below(6) == 0 else n,)


def _draw_count(r, simple):
    return (r.below(4) if simple else r.below(12) + 1,)


def _draw_two(r, simple):
    if simple:
        return r.below(4), r.below(4)
    return r.below(19) - 9, r.below(19) - 9


def _texts_near(k):
    return _single(("aB" * k)[:k], ("eD3" * k)[: k + 1])


def _words_near(k):
    word = "tea" * k
    return _single(word[:k], word[: k + 1] + " " + word[:k], "Is " + word[: max(k - 1, 1)])


NUMBERS = Domain(
    "numbers", ("xs",),
    _lists(
        "3 -1 2 2 8", "5 4 -6 0 7", "-3 -8 9 1 1", "6 2 9 4 3", "7 -2 -2 5 -9", "9 8 7 6 5", "1 2 3 4 5",
        "-5 -4 -7", "2 2", "4 -4 4", "0 0 3", "", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "-1", "-2", "-3", "-6", "-9",
        "8 3", "-7 6", "5 9 -8 6 -1", "-6 3 9 -9 2", "4 1 6 8 -5", "1 1 2", "6 5", "7 7 7 -3"),
    _lists("", "3", "-2", "0", "4 4", "5 2 8 3", "-1 -6 7 -3 2", "1 9 1 6 9"),
    lambda k: _single([k - 1, k, k + 1], [k, -k], [k + 1, k]),
    _draw_list)

TEXT = Domain(
    "text", ("s",),
    _single(
        "aBcE1", "Hello", "b2 Ae", "xyz", "AEIOU", "99", "e a", "", "a", "B", "7", " ", "kUdo3", "aab", "ZzE", "oo1b", "Ate4",
        "u-I", "bcd eF", "EeEe", "i9iX", "cab", "T", "aeb Ai", "Q5w2", "  b"),
    _single("", "a", "B", "aBcE1", "hello", "OddEven", "a1 b2", "XYZ"),
    _texts_near, _draw_text)

WORDS = Domain(
    "words", ("s",),
    _single(
        "the cat Ate a bean", "one two three", "apple egg Tin", "a bb ccc dddd", "Old owl", "bat abe tab", "", "hi", "Eve",
        "eat me at ten", "Go on", "nine", "x yy x", "banana bean", "tree Ice", "seven at", "abc", "e", "Ab cde fghi jklmno",
        "on no", "area tot"),
    _single("", "a", "cat", "the old Egg", "bat eat be", "to be or not", "Apple ten tea"),
    _words_near, _draw_words)

# WHOLE is n with its digits; COUNT is an n that is counted up to.
WHOLE = Domain(
    "whole", ("n",),
    _single(
        1234, 7, -36, 905, 88, 42, 0, 5, 1, 2, 3, 4, 6, 8, 9, -1, -4, -7, 10, 11, 12, 13, 27, 59, 60, 64, 99, 100, 255, 386,
        717, 5791, -20, -93),
    _single(0, 1, -4, 7, 25, 60, 99, 308),
    lambda k: _single(k - 1, k, k + 1, 2 * k, -k),
    _draw_whole)

COUNT = Domain(
    "count", ("n",),
    _single(12, 7, 9, 10, 6, 4, 0, 1, 2, 3, 5, 8, 11, 13, 15, 16, 18, 20, -1, -3),
    _single(0, 1, -2, 2, 5, 6, 9, 12),
    lambda k: _single(k - 1, k, k + 1),
    _draw_count)

TWO = Domain(
    "two", ("a", "b"),
    _pairs(
        3, 8, 7, 2, -4, 5, 6, 6, 0, 9, -3, -8, 1, 1, 0, 0, 2, 3, 5, -5, 9, 4, -7, -2, 8, 1, 4, 4, -1, 0, 10, 3, 2, 12, 6, -9,
        -6, 7, 5, 7, 8, 4),
    _pairs(0, 0, 1, 2, 2, 1, 4, 4, -3, 5, 6, -2, -5, -1, 9, 7),
    lambda k: _pairs(k, 1, k, k, k + 1, k - 1, 1, k),
    _draw_two)

BY_NAME = {domain.name: domain for domain in (NUMBERS, TEXT, WORDS, WHOLE, COUNT, TWO)}
