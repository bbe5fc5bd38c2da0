"""Training text about the built-in training problems: answers and suites."""

import json
from functools import lru_cache

from domains import BY_NAME
from parts import wording
from randoms import Random
from values import assertion, function, literal

MAX_INPUT_DRAWS = 40  # bounds the search for an input with some property

_function = lru_cache(maxsize=None)(function)


class Author:
    """Writes one row about one problem."""

    def __init__(self, r, mix, problem):
        self.r, self.mix, self.problem = r, mix, problem
        self.solve = _function(problem["solution"])

    def chance(self, rate):
        return self.r.fraction() < rate

    def mutant(self):
        return self.r.choice(self.problem["mutants"])

    def answer(self):
        """The question and the ground truth or, at the bug rate, a mutant."""
        question = wording(self.problem["phrase"], self.r)
        code = self.problem["solution"]
        if self.chance(self.mix["bug_rate"]):
            code = self.mutant()
        return question, code

    def suite(self):
        """The question, the ground truth or a mutant, and asserts about it."""
        question = wording(self.problem["phrase"], self.r)
        code = self.problem["solution"]
        wants = [None] * self.mix["asserts"]
        if self.chance(self.mix["defect_rate"]):
            code = self.mutant()
            shown = _function(code)
            if self.chance(self.mix["target_rate"]):
                wants[self.r.below(len(wants))] = lambda arguments: self.differs(shown, arguments)
            else:
                wants = [lambda arguments: not self.differs(shown, arguments)] * len(wants)
        used = set()
        return question, code, "\n".join(self.assertion(self.input(used, want)) for want in wants)

    def differs(self, mutant, arguments):
        truth = self.solve(*arguments)
        try:
            return mutant(*arguments) != truth
        except Exception:  # a mutant may raise anything
            return True

    def input(self, used, want):
        """A random input that is new to the suite and wanted, if the draws allow. No want wants any."""
        simple = self.chance(self.mix["simple_rate"])
        for _ in range(MAX_INPUT_DRAWS):
            arguments = BY_NAME[self.problem["domain"]].draw(self.r, simple)
            text = literal(arguments)
            if text not in used and (want is None or want(arguments)):
                used.add(text)
                break
            if self.r.below(4) == 0:  # there may be none of this size
                simple = not simple
        return arguments

    def assertion(self, arguments):
        """States the truth or, at the wrong rate, a plausible other value."""
        value = self.solve(*arguments)
        if self.chance(self.mix["wrong_rate"]):
            value = self.misjudge(arguments, value)
        return assertion(arguments, value)

    def misjudge(self, arguments, truth):
        """The value of a mutant, or the truth with a small slip."""
        if self.r.below(2) == 0:
            mutant = _function(self.mutant())
            try:
                value = mutant(*arguments)
                if value != truth and literal(value):
                    return value
            except Exception:  # a mutant may raise anything, or return a value without a literal
                pass
        if isinstance(truth, bool):
            return not truth
        if isinstance(truth, int):
            return truth + 1 - 2 * self.r.below(2)
        if isinstance(truth, (str, list)):
            if not truth:
                return "a" if isinstance(truth, str) else [0]
            at = self.r.below(len(truth))
            return truth[:at] + truth[at + 1:]
        return 0


def write(options, problems, out):
    """Writes one JSON list per row: every step-th row from the first.

    The options are those of corpus.go, the problems lines of JSON.
    """
    read = lru_cache(maxsize=None)(json.loads)
    write_row = {"code": Author.answer, "test": Author.suite}[options["role"]]
    for i in range(options["first"], options["rows"], options["step"]):
        r = Random(options["seed"], i)
        author = Author(r, options["mix"], read(r.choice(problems)))
        out.write(json.dumps(write_row(author)) + "\n")
