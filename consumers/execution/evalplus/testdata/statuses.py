"""Grades samples with EvalPlus itself:

    pip install --no-deps evalplus && pip install numpy psutil appdirs tempdir wget tqdm multipledispatch
    HUMANEVAL_OVERRIDE_PATH=... MBPP_OVERRIDE_PATH=... python3 statuses.py humaneval|mbpp samples.jsonl

It prints a JSON line per sample: the task, and whether the base tests and the plus
tests pass. Only tasks with samples are run. The time limit of a call is generous, so
that a busy machine does not decide.
"""

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from types import SimpleNamespace

try:
    import datasets  # noqa: F401
except ImportError:  # EvalPlus imports it for other data sets
    sys.modules["datasets"] = SimpleNamespace(load_dataset=None)

from evalplus.data.humaneval import get_human_eval_plus
from evalplus.data.mbpp import get_mbpp_plus
from evalplus.eval import PASS, untrusted_check
from evalplus.eval._special_oracle import MBPP_OUTPUT_NOT_NONE_TASKS
from evalplus.gen.util import trusted_exec

SECONDS = 10.0
FACTOR = 10.0


def grade(dataset, problem, solutions):
    entry, truth = problem["entry_point"], problem["prompt"] + problem["canonical_solution"]
    found = dataset == "mbpp" and entry in MBPP_OUTPUT_NOT_NONE_TASKS
    rows = [[] for _ in solutions]
    for part in ("base_input", "plus_input"):
        inputs = problem[part]
        expected, times = trusted_exec(truth, inputs, entry, record_time=True, output_not_none=found)
        for row, solution in zip(rows, solutions):
            status, _ = untrusted_check(
                dataset, solution, inputs, entry, expected, problem["atol"], times, True, SECONDS, FACTOR)
            row.append(status == PASS)
    return [(problem["task_id"], base, plus) for base, plus in rows]


def main(dataset, path):
    problems = get_human_eval_plus(err_incomplete=False) if dataset == "humaneval" else get_mbpp_plus(err_incomplete=False)
    samples = {}
    for line in open(path):
        row = json.loads(line)
        samples.setdefault(row["task_id"], []).append(row["solution"])
    with ProcessPoolExecutor(2) as pool:
        for graded in pool.map(grade, *zip(*[(dataset, problems[task], all) for task, all in samples.items()])):
            for task, base, plus in graded:
                print(json.dumps({"task_id": task, "base": base, "plus": plus}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
