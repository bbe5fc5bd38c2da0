"""Counts the mutants of Cosmic Ray that survive tests:

    pip install cosmic-ray
    python3 survivors.py functions.jsonl

It prints each row with the number of mutants, and of those that pass all tests. Each
mutant runs in a process of its own. One that does not end within the time is killed.
"""
import json
import os
import signal
import sys

import cosmic_ray.plugins
from cosmic_ray.mutating import mutate_code

SECONDS = 5
WITH_ARGUMENTS = ("VariableReplacer", "VariableInserter")


def mutants(code):
    for name in cosmic_ray.plugins.operator_names():
        if name.endswith(WITH_ARGUMENTS):
            continue
        operator, occurrence = cosmic_ray.plugins.get_operator(name)(), 0
        while (mutant := mutate_code(code, operator, occurrence)) is not None:
            yield mutant
            occurrence += 1


def survives(program):
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    passed = False
    try:
        # Processor time, so that other work on the machine kills no mutant.
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        exec(compile(program, "program", "exec"), {"__name__": "__main__"})
        passed = True
    finally:
        os._exit(not passed)


with open(sys.argv[1]) as rows:
    for row in map(json.loads, rows):
        programs = [mutant + "\n" + "\n".join(row["tests"]) for mutant in mutants(row["code"])]
        row["mutants"], row["survived"] = len(programs), sum(map(survives, programs))
        print(json.dumps(row), flush=True)
