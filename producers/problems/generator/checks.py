"""Properties of the sets, checked whenever they are made."""

from collections import Counter
from itertools import product

from randoms import Random
from sets import FAMILIES, HARD_FAMILIES, MIN_SEEN, THIN_TESTS, behaviour_of, fingerprint_of
from values import function, outcome

MIN_QUOTA = 0.9  # the share of its quota that a family has, at least
MIN_CAUGHT_TRAINING, MIN_CAUGHT_HELD_OUT = 0.9, 0.97  # the share of the mutants that golden tests catch
THIN_CAUGHT = (0.4, 0.85)  # the share of the mutants that thin suites catch


class CheckError(Exception):
    """A property does not hold."""


def _check(holds, text, *values):
    if not holds:
        raise CheckError(text.format(*values))


def check(training, held_out):
    """The default set."""
    _check(len(training) >= 2000 and len(held_out) >= 200, "{} training and {} held-out problems", len(training), len(held_out))
    _check_families(FAMILIES, training, held_out)
    _check_held_out(training, held_out)
    _check_distinct(training + held_out)
    for problems, tests, least in ((training, lambda p: p.golden([]), MIN_CAUGHT_TRAINING), (held_out, _full, MIN_CAUGHT_HELD_OUT)):
        caught = _caught(problems, tests)
        _check(caught >= least, "golden tests catch {:.3f} of the mutants", caught)


def check_hard(training, held_out, default_training, default_held_out):
    """The harder set, beside the default one."""
    _check(len(training) >= 1500 and len(held_out) >= 150, "{} training and {} held-out problems", len(training), len(held_out))
    _check_families(HARD_FAMILIES, training, held_out)
    _check_held_out(training, held_out)
    _check_new(default_training, held_out)
    _check_distinct(training + held_out + default_training + default_held_out)
    caught = _caught(held_out, _full)
    _check(caught >= MIN_CAUGHT_HELD_OUT, "golden tests catch {:.3f} of the mutants", caught)
    for p in training:
        _check(len(p.thin()) == THIN_TESTS, "{} has {} golden tests", p.id, len(p.thin()))
    caught, (least, most) = _caught(training, lambda p: p.thin()), THIN_CAUGHT
    _check(least <= caught <= most, "thin suites catch {:.3f} of the mutants", caught)


def _check_families(families, training, held_out):
    held = Counter(p.draft.family for p in held_out)
    both = Counter(p.draft.family for p in training) + held
    for name, quota, _ in families:
        _check(both[name] >= quota * MIN_QUOTA, "family {} has {} problems, its quota is {}", name, both[name], quota)
        _check(held[name], "family {} has no held-out problem", name)


def _wordings(problem):
    return {tuple(pieces) for pieces in product(*(sorted(set(piece)) for piece in problem.draft.phrase))}


def _check_held_out(training, held_out):
    """Held-out problems are unseen compositions of seen parts."""
    _check_new(training, held_out)
    known = Counter(part for p in training for part in p.draft.parts())
    for p in held_out:
        for part in p.draft.parts():
            _check(known[part] >= MIN_SEEN, "{}: training has the part {} {} times", p.id, part, known[part])


def _check_new(training, held_out):
    """Training has neither the compositions of held-out problems nor their questions."""
    skeletons = {p.draft.skeleton() for p in training}
    questions = {wording for p in training for wording in _wordings(p)}
    for p in held_out:
        _check(p.draft.skeleton() not in skeletons, "{}: training has the composition {}", p.id, p.draft.skeleton())
        _check(not questions & _wordings(p), "{}: training has a wording of its question", p.id)


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


def _full(problem):
    return problem.golden(problem.mutants)


def _caught(problems, tests_of):
    """The share of the problems' mutants that fail their golden tests."""
    caught = total = 0
    for p in problems:
        _check(len(p.mutants) >= 2, "{} has {} mutants", p.id, len(p.mutants))
        tests = tests_of(p)
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
