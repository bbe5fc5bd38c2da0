"""Makes the built-in problems, and training text about them.

    python3 generator sets DIRECTORY    writes train.jsonl, heldout.jsonl and corpus.jsonl, and the harder set:
                                        hard.jsonl and hard-heldout.jsonl
    python3 generator card DIRECTORY [ANSWERS...]
                                        prints how the sets in a directory overlap and, for tables of answers
                                        (codea1 replay export RUN --table answers), the parts of the gain of runs
    python3 generator hard-card DIRECTORY [ANSWERS...]
                                        the same for the harder set, with the training problems of both sets
    python3 generator corpus            writes training text; standard input has a line of options, then corpus.jsonl

Needs CPython 3.9 or newer and nothing else.
"""

import json
import os
import sys


# Per card the training sets and the held-out set.
CARDS = {"card": (("train",), "heldout"), "hard-card": (("train", "hard"), "hard-heldout")}


def write_sets(directory):
    from checks import check, check_hard
    from sets import make_hard_sets, make_sets

    training, held_out = make_sets()
    check(training, held_out)
    hard_training, hard_held_out = make_hard_sets(training + held_out)
    check_hard(hard_training, hard_held_out, training, held_out)
    write_rows(directory, "train.jsonl", (p.row([]) for p in training))
    write_rows(directory, "heldout.jsonl", (p.row(p.mutants) for p in held_out))
    write_rows(directory, "corpus.jsonl", (p.corpus_row() for p in training))
    write_rows(directory, "hard.jsonl", (p.row([], thin=True) for p in hard_training))
    write_rows(directory, "hard-heldout.jsonl", (p.row(p.mutants) for p in hard_held_out))


def write_rows(directory, name, rows):
    with open(os.path.join(directory, name), "w", encoding="ascii", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


def main():
    if sys.argv[1:] == ["corpus"]:
        import corpus

        options, *problems = sys.stdin.read().splitlines()
        corpus.write(json.loads(options), problems, sys.stdout)
    elif len(sys.argv) >= 3 and sys.argv[1] in CARDS:
        from card import write_card

        write_card(sys.argv[2], *CARDS[sys.argv[1]], sys.argv[3:], sys.stdout)
    elif len(sys.argv) == 3 and sys.argv[1] == "sets":
        write_sets(sys.argv[2])
    else:
        sys.exit(__doc__)


main()
