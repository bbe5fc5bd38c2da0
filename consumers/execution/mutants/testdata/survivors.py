"""Counts the mutants of Cosmic Ray that survive tests:

    pip install cosmic-ray
    python3 survivors.py functions.jsonl

It prints each row with the number of mutants, and of those that pass all tests. Each
mutant runs in a process of its own. One that does not end within the time is killed.
"""
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

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
    try:
        return subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, timeout=SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


with open(sys.argv[1]) as rows, ThreadPoolExecutor(2) as pool:
    for row in map(json.loads, rows):
        programs = [mutant + "\n" + "\n".join(row["tests"]) for mutant in mutants(row["code"])]
        row["mutants"], row["survived"] = len(programs), sum(pool.map(survives, programs))
        print(json.dumps(row))
