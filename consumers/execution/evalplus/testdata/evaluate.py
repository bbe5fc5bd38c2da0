"""Runs EvalPlus's own command on samples with two processes, and prints the seconds
that it takes:

    HUMANEVAL_OVERRIDE_PATH=... python3 evaluate.py humaneval samples.jsonl

statuses.py names the packages to install. A thread of EvalPlus ends up to 20 seconds after the
results are written. That time does not count.
"""

import sys
import time
from types import SimpleNamespace

# EvalPlus imports these to sample from models, and to print in colours.
sys.modules["datasets"] = SimpleNamespace(load_dataset=None)
sys.modules["evalplus.codegen"] = SimpleNamespace(run_codegen=None)
sys.modules["termcolor"] = SimpleNamespace(cprint=lambda text, color: print(text, file=sys.stderr))

from evalplus.evaluate import evaluate


def main(dataset, samples):
    out, sys.stdout = sys.stdout, sys.stderr
    began = time.monotonic()
    evaluate(dataset, samples=samples, parallel=2)
    print(time.monotonic() - began, file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
