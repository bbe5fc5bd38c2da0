"""The figures of the card of the built-in sets."""

import io
import json
import os
import re
import tokenize
from collections import Counter
from statistics import median

from values import function

TEXT_WORDS, CODE_TOKENS = 5, 4  # lengths of the sequences that two texts are compared by


def write_card(directory, training, held_out, answers, out):
    """Writes the overlap of sets in a directory and, for the answers of runs, the parts of their gain."""
    training = [p for name in training for p in rows(os.path.join(directory, name + ".jsonl"))]
    held_out = rows(os.path.join(directory, held_out + ".jsonl"))
    print("{} training and {} held-out problems".format(len(training), len(held_out)), file=out)
    for name, of, n in (("question", words, TEXT_WORDS), ("solution", symbols, CODE_TOKENS)):
        same = len({p[name] for p in held_out} & {p[name] for p in training})
        write_overlap(name, same, [of(p[name]) for p in training], [of(p[name]) for p in held_out], n, out)
    write_behaviour(training, held_out, out)
    for path in answers:
        write_gain(path, out)


def rows(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def words(question):
    """The words of a question; numbers are equal."""
    return re.sub(r"\d+", "0", question.lower()).split()


def symbols(source):
    """The tokens of a program; numbers are equal."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return ["0" if t.type == tokenize.NUMBER else t.string for t in tokens if t.string.strip()]


def sequences(tokens, n):
    return {tuple(tokens[i:i + n]) for i in range(max(1, len(tokens) - n + 1))}


def write_overlap(name, same, training, held_out, n, out):
    """How much of each held-out text training has, and how near the nearest training text is."""
    known = {tuple(t) for t in training}
    sets = [sequences(t, n) for t in training]
    parts = set().union(*sets)
    seen, nearest = [], []
    for tokens in held_out:
        own = sequences(tokens, n)
        seen.append(len(own & parts) / len(own))
        nearest.append(max(len(own & other) / len(own | other) for other in sets))
    but = sum(tuple(t) in known for t in held_out)
    print("{}: {} are in training, {} but for numbers; of the sequences of {} {}, training has {:.0%} (median); "
          "Jaccard similarity to the nearest {:.2f} (median), {:.2f} (largest)".format(
              name, same, but, n, "words" if name == "question" else "tokens", median(seen), median(nearest), max(nearest)), file=out)


def write_behaviour(training, held_out, out):
    """Which golden tests of held-out problems the ground truths of training pass."""
    truths = {}
    for p in training:
        truths.setdefault(p["starter_code"], []).append(p["solution"])
    best = []
    for p in held_out:
        tests = [compile(test, "test", "exec") for test in p["tests"]]
        shares = [share(function(source), tests) for source in truths.get(p["starter_code"], ())]
        best.append(max(shares, default=0))
    print("behaviour: {} pass all golden tests with a ground truth of training; the nearest ground truth passes {:.0%} of them (median); "
          "it passes 90% or more for {}".format(sum(b == 1 for b in best), median(best), sum(b >= 0.9 for b in best)), file=out)


def share(solve, tests):
    passed, scope = 0, {"solve": solve}
    for test in tests:
        try:
            exec(test, scope)
            passed += 1
        except Exception:  # AssertionError, or any other that the program raises
            pass
    return passed / len(tests)


def write_gain(path, out):
    """Writes how much of the gain of a run comes from answers that load.

    The share of correct answers is the share that loads times the share of these
    that is correct. The first factor alone, with the second as before training, is
    the part of the format.
    """
    counts = {}
    for row in rows(path):
        if row["purpose"] == "eval" and row["finish"] != "given" and not row["failure"]:
            c = counts.setdefault(row["step"], Counter())
            c["all"] += 1
            c["loads"] += row["loads"]
            c["correct"] += row["loads"] and row["golden"] > 0 and row["golden_passed"] == row["golden"]
    if len(counts) < 2:
        raise SystemExit(path + ": want the answers of two evaluations; `codea1 replay export RUN --table answers` writes them")
    first, last = counts[min(counts)], counts[max(counts)]
    (loads, correct), (loads_after, correct_after) = ((c["loads"] / c["all"], c["correct"] / c["all"]) for c in (first, last))
    form = (loads_after - loads) * correct / loads if loads else correct_after
    print("{}: answers that load {:.1%} -> {:.1%}, correct answers {:.1%} -> {:.1%}; of the gain of {:+.1f} points, format gives {:+.1f} and "
          "substance {:+.1f}".format(path, loads, loads_after, correct, correct_after, 100 * (correct_after - correct), 100 * form,
                                     100 * (correct_after - correct - form)), file=out)
