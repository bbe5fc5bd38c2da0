"""Properties of the sets, checked whenever they are made."""

from collections import Counter
from itertools import product

from randoms import Random
from sets import FAMILIES, MIN_SEEN, behaviour_of, fingerprint_of
from values import function, outcome

MIN_QUOTA = 0.9  # the share of its quota that a family has, at least
MIN_CAUGHT_TRAINING, MIN_CAUGHT_HELD_OUT = 0.9, 0.97  # the share of the mutants that golden tests catch


class CheckError(Exception):
    """A property does not hold."""


def _check(holds, text, *values):
    if not holds:
        raise CheckError(text.format(*values))


def check(training, held_out):
    _check(len(training) >= 2000 and len(held_out) >= 200, "{} training and {} held-out problems", len(training), len(held_out))
    _check_families(training, held_out)
    _check_held_out(training, held_out)
    _check_distinct(training + held_out)
    for problems, catch, least in ((training, False, MIN_CAUGHT_TRAINING), (held_out, True, MIN_CAUGHT_HELD_OUT)):
        caught = _caught(problems, catch)
        _check(caught >= least, "golden tests catch {:.3f} of the mutants", caught)


def _check_families(training, held_out):
    held = Counter(p.draft.family for p in held_out)
    both = Counter(p.draft.family for p in training) + held
    for name, quota, _ in FAMILIES:
        _check(both[name] >= quota * MIN_QUOTA, "family {} has {} problems, its quota is {}", name, both[name], quota)
        _check(held[name], "family {} has no held-out problem", name)


def _wordings(problem):
    return {tuple(pieces) for pieces in product(*(sorted(set(piece)) for piece in problem.draft.phrase))}


def _check_held_out(training, held_out):
    """Held-out problems are unseen compositions of seen parts."""
    skeletons = {p.draft.skeleton() for p in training}
    known = Counter(part for p in training for part in p.draft.parts())
    questions = {wording for p in training for wording in _wordings(p)}
    for p in held_out:
        _check(p.draft.skeleton() not in skeletons, "{}: training has the composition {}", p.id, p.draft.skeleton())
        _check(not questions & _wordings(p), "{}: training has a wording of its question", p.id)
        for part in p.draft.parts():
            _check(known[part] >= MIN_SEEN, "{}: training has the part {} {} times", p.id, part, known[part])


def _check_distinct(problems):
    """No two problems ask or behave alike, and each answers the random inputs of its domain."""
    r = Random(3, 4)
    prints, questions = {}, {}
    for p in problems:
        computed = fingerprint_of(p.domain, behaviour_of(p.program, p.domain))
        _check(computed == p.fingerprint, "{}: its program has the fingerprint {:x}, not {:x}", p.id, computed, p.fingerprint)
        for seen, mark in ((prints, p.fingerprint), (questions, p.question())):
            _check(mark not in seen, "{} and {} are alike: {}", p.id, seen.get(mark), p.question())
            seen[mark] = p.id
        for i in range(10):
            arguments = p.domain.draw(r, i % 2 == 0)
            _check(outcome(p.solve, arguments) is not None, "{} raises on {}", p.id, arguments)


def _caught(problems, catch):
    """The share of the problems' mutants that fail the golden tests."""
    caught = total = 0
    for p in problems:
        _check(len(p.mutants) >= 2, "{} has {} mutants", p.id, len(p.mutants))
        tests = p.golden(p.mutants if catch else [])
        _check(_passes(p.program.source(), tests), "{} fails its golden tests", p.id)
        total += len(p.mutants)
        caught += sum(not _passes(source, tests) for _, source in p.mutants)
    return caught / total


def _passes(source, tests):
    scope = {"solve": function(source)}
    try:
        exec("\n".join(tests), scope)
    except Exception:  # AssertionError, or any other that the program raises
        return False
    return True
