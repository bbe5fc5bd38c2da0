"""The training and the held-out problems, of the default and of the harder set.

Every part of a held-out problem occurs in training, its composition does not,
and no two problems of either set behave alike on the probes of their domain.
"""

from collections import Counter
from functools import lru_cache

from families_choices import draw_branched, draw_chosen, draw_combined, draw_matched, draw_tallied
from families_lists import draw_found, draw_paired, draw_quantified, draw_replaced, draw_running, draw_stopped
from families_longer import (
    draw_bounded, draw_counted, draw_decided, draw_exchanged, draw_joined, draw_long_fold, draw_long_paired, draw_long_running,
    draw_long_spelled, draw_long_stopped, draw_mapped, draw_sought, draw_trimmed, draw_weighed)
from families_numbers import draw_fold
from families_texts import draw_rewritten, draw_screened, draw_spelled, draw_worded
from mutants import OMISSIONS, mutants_of, slips
from parts import wording
from programs import parse
from randoms import Random
from values import assertion, function, key, outcome

SEED = 20261120

# How many problems each family has, training and held-out together.
FAMILIES = (
    ("fold", 950, draw_fold),
    ("quantified", 140, draw_quantified),
    ("replaced", 130, draw_replaced),
    ("found", 150, draw_found),
    ("stopped", 80, draw_stopped),
    ("running", 60, draw_running),
    ("paired", 140, draw_paired),
    ("combined", 170, draw_combined),
    ("branched", 150, draw_branched),
    ("spelled", 260, draw_spelled),
    ("rewritten", 100, draw_rewritten),
    ("screened", 70, draw_screened),
    ("tallied", 80, draw_tallied),
    ("worded", 200, draw_worded),
    ("chosen", 150, draw_chosen),
    ("matched", 110, draw_matched),
)

# The families of the harder set. The first five make the longest compositions of
# the default set's families; the embedded Code LLM gets most of these right at least
# once in eight answers. The others join more parts than its training text does.
HARD_FAMILIES = (
    ("fold", 420, draw_long_fold),
    ("paired", 190, draw_long_paired),
    ("stopped", 130, draw_long_stopped),
    ("running", 130, draw_long_running),
    ("spelled", 190, draw_long_spelled),
    ("trimmed", 150, draw_trimmed),
    ("bounded", 320, draw_bounded),
    ("joined", 170, draw_joined),
    ("mapped", 150, draw_mapped),
    ("counted", 60, draw_counted),
    ("weighed", 110, draw_weighed),
    ("decided", 110, draw_decided),
    ("sought", 80, draw_sought),
    ("exchanged", 50, draw_exchanged),
)

MAX_DRAWS_PER_PROBLEM = 40  # a family that needs more has a mistake in its parts
HELD_OUT_ONE_IN = 10  # compositions to each held-out one
MIN_SEEN = 5  # how often training shows each part of a held-out problem
MIN_WRONG = 4  # how many slips, at least, change a problem's behaviour
COMMONEST_PERCENT = 80  # the largest share of the probes with the same result
MAX_NEAR = 4  # golden tests near a program's constants
MAX_CATCHES = 6  # golden tests added to catch mutants
BUGGY_PER_PROBLEM = 4  # wrong solutions of a held-out problem
THIN_TESTS = 3  # golden tests of a training problem of the harder set
MAX_THIN_DRAWS = 200  # bounds the search for inputs of thin suites

_HASH_PRIME = 0x100000001B3
_MASK = (1 << 64) - 1


@lru_cache(maxsize=None)
def _hash(text):
    """FNV-1a. It decides which problems there are, so it must never change."""
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * _HASH_PRIME & _MASK
    return h


def fingerprint_of(domain, behaviour):
    """A number for a behaviour: the outcomes on the probes of the domain."""
    h = _hash(domain.params[0] + domain.name)
    for result in behaviour:
        h = (h ^ (1 if result is None else _hash(result))) * _HASH_PRIME & _MASK
    return h


def behaviour_of(program, domain):
    solve = function(program.source())
    return [outcome(solve, probe) for probe in domain.probes]


def _shares(program, domain, behaviour):
    solve = function(program.source())
    return all(outcome(solve, probe) == want for probe, want in zip(domain.probes, behaviour))


def _telling(behaviour):
    """Whether the results vary and none is an exception."""
    (_, commonest), = Counter(behaviour).most_common(1)
    return None not in behaviour and commonest * 100 <= COMMONEST_PERCENT * len(behaviour)


class Problem:
    def __init__(self, draft, program, fingerprint):
        self.draft, self.program, self.fingerprint = draft, program, fingerprint
        self.domain = draft.domain
        self.solve = function(program.source())
        self.id = ""
        self.mutants = []  # pairs of a bug and a source

    def question(self):
        """The question in the problem's own fixed wording."""
        return wording(self.draft.phrase, Random(self.fingerprint, SEED))

    def difficulty(self):
        parts = len(self.draft.parts())
        return "hard" if parts > 3 else "medium" if parts > 2 else "easy"

    def find_mutants(self, held_out):
        """Sets the mutants: they behave unlike the truth, one another and every held-out problem."""
        seen = {self.fingerprint} | held_out
        for bug, mutant in mutants_of(self.program):
            fingerprint = fingerprint_of(self.domain, behaviour_of(mutant, self.domain))
            if fingerprint not in seen:
                seen.add(fingerprint)
                self.mutants.append((bug, mutant.source()))

    def golden(self, catch):
        """The golden tests: edge cases, inputs near constants, and inputs that catch the mutants."""
        tests = {}  # ordered

        def add(arguments):
            try:
                tests[assertion(arguments, self.solve(*arguments))] = True
            except Exception:  # the truth is undefined there
                pass

        for arguments in self.domain.edges:
            add(arguments)
        near = [arguments for k in _constants(self.program.body) for arguments in self.domain.near(k)]
        for arguments in near[:MAX_NEAR]:
            add(arguments)
        for _, source in catch:
            if len(tests) >= len(self.domain.edges) + MAX_NEAR + MAX_CATCHES:
                break
            mutant = function(source)
            for arguments in self.domain.probes:
                truth = outcome(self.solve, arguments)
                if truth is not None and outcome(mutant, arguments) != truth:
                    add(arguments)
                    break
        return list(tests)

    def thin(self):
        """A few golden tests of random inputs, with two results or more. They let wrong answers pass."""
        r = Random(self.fingerprint, SEED + 1)
        tests, results = [], set()
        for _ in range(MAX_THIN_DRAWS):
            arguments = self.domain.draw(r, False)
            value = self.solve(*arguments)
            test = assertion(arguments, value)
            last = len(tests) == THIN_TESTS - 1
            if test not in tests and not (last and results == {key(value)}):
                tests.append(test)
                results.add(key(value))
            if len(tests) == THIN_TESTS:
                break
        return tests

    def row(self, catch, thin=False):
        """The problem as in a JSONL set; its mutants to catch are its wrong solutions."""
        row = {
            "id": self.id, "source": "builtin", "difficulty": self.difficulty(), "question": self.question(),
            "starter_code": self.program.header(), "entry_point": "solve", "solution": self.program.source(),
            "tests": self.thin() if thin else self.golden(catch),
        }
        if catch:
            row["buggy"] = [{"code": code, "bug_type": bug} for bug, code in _varied(catch)]
        return row

    def corpus_row(self):
        """The part of a training problem that the corpus needs."""
        return {
            "domain": self.domain.name, "phrase": self.draft.phrase, "solution": self.program.source(),
            "mutants": [source for _, source in self.mutants],
        }


def _varied(mutants):
    """Up to BUGGY_PER_PROBLEM mutants, one of each bug before a second."""
    bugs = [bug for bug, _ in mutants]
    first = [m for i, m in enumerate(mutants) if m[0] not in bugs[:i]]
    again = [m for i, m in enumerate(mutants) if m[0] in bugs[:i]]
    return (first + again)[:BUGGY_PER_PROBLEM]


def _constants(n):
    """The ints around which the results change; 0, 1 and 2 are left to the edge cases."""
    if n is None:
        return []
    if n.kind == "int" and n.value > 2:
        return [n.value]
    return [k for child in n.children for k in _constants(child)]


def _accept(draft, seen):
    """The problem of a draft, or None.

    None for a draft that raises, hardly ever changes its result, behaves like
    one seen before, has a part that makes no difference, or can hardly be got
    wrong.
    """
    program = parse(draft.source())
    behaviour = behaviour_of(program, draft.domain)
    fingerprint = fingerprint_of(draft.domain, behaviour)
    if fingerprint in seen or not _telling(behaviour):
        return None
    wrong = 0
    for bug, mutant in slips(program):
        if wrong >= MIN_WRONG and bug not in OMISSIONS:
            continue
        if not _shares(mutant, draft.domain, behaviour):
            wrong += 1
        elif bug in OMISSIONS:
            return None
    return Problem(draft, program, fingerprint) if wrong >= MIN_WRONG else None


def _problems(name, quota, draw, start, known):
    """The problems of a family: drafts without idle parts that behave like none before."""
    r = Random(SEED, start)
    drawn, seen, problems = set(), set(known), []
    for _ in range(quota * MAX_DRAWS_PER_PROBLEM):
        if len(problems) == quota:
            break
        draft = draw(r)
        if draft.source() in drawn:
            continue
        drawn.add(draft.source())
        problem = _accept(draft, seen)
        if problem:
            seen.add(problem.fingerprint)
            problems.append(problem)
    return problems


def _is_held_out(skeleton):
    """Decided by the composition alone: it never occurs in training with another constant."""
    return (_hash(skeleton) >> 8) % HELD_OUT_ONE_IN == 0


def make_sets():
    """The training and the held-out problems of the default set, with their mutants."""
    return _make(FAMILIES, "", set())


def make_hard_sets(default):
    """Those of the harder set. No problem behaves like one of the default set."""
    return _make(HARD_FAMILIES, "hard-", {problem.fingerprint for problem in default})


def _make(families, prefix, known):
    seen, training, held_out = set(known), [], []
    for name, quota, draw in families:
        for problem in _problems(name, quota, draw, _hash(prefix + name), known):
            if problem.fingerprint not in seen:
                seen.add(problem.fingerprint)
                (held_out if _is_held_out(problem.draft.skeleton()) else training).append(problem)
    parts = Counter(part for problem in training for part in problem.draft.parts())
    held_out = [p for p in held_out if all(parts[part] >= MIN_SEEN for part in p.draft.parts())]
    for name, problems in (("train", training), ("heldout", held_out)):
        for i, problem in enumerate(problems):
            problem.id = "{}{}-{:04d}".format(prefix, name, i + 1)
    fingerprints = {problem.fingerprint for problem in held_out}
    for problem in training + held_out:
        problem.find_mutants(fingerprints)
    return training, held_out
