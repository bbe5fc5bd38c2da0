"""Executes the answers of a group with everything in one process per answer: the
ground truth, the stated answers and the candidate are one generated program, and
the verdicts are marker lines on its standard output, which is what the harness of
the paper's program does. The programs run as fusion.py runs them.

    reference.py PYTHON AT_A_TIME [CHECKOUT]

The first line of standard input is the group: a JSON object of truth, codes,
suites (a list of texts per code) and historical (pairs of call and answer). Each
further line is answered with how many tests are valid, how many pass, and the CPU
seconds of this process and its children.
"""

import ast
import asyncio
import json
import re
import sys
import textwrap

import fusion

VALID = """try:
    want = {call}
    wants.append(want)
    print("VALID {number}", want == ({stated}), flush=True)
except Exception as error:
    wants.append(None)
    print("INVALID {number}", repr(error), flush=True)
"""
PASSES = """try:
    assert {call} == {want}
    print("PASS {number}", flush=True)
except Exception as error:
    print("FAIL {number}", repr(error), flush=True)
"""


def tests_of(suite):
    for block in re.findall("```python(.*?)```", suite, re.DOTALL):
        for node in ast.parse(block).body:
            if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
                yield ast.unparse(node.test.left), ast.unparse(node.test.comparators[0])


def program(group, index):
    tests = [test for suite in group["suites"][index] for test in tests_of(suite)]
    parts = [group["truth"], "wants = []"]
    for number, (call, stated) in enumerate(tests):
        parts.append(VALID.format(call=call, stated=stated, number=number))
    parts += ["try:", textwrap.indent(group["codes"][index], "    "), "except Exception: pass"]
    for number, (call, _) in enumerate(tests):
        parts.append(PASSES.format(call=call, want="wants[%d]" % number, number=number))
    for number, (call, want) in enumerate(group["historical"]):
        parts.append(PASSES.format(call=call, want=want, number="h%d" % number))
    return "\n".join(parts)


async def main():
    run = fusion.make_runner()
    group = json.loads(sys.stdin.readline())
    for _ in sys.stdin:
        before = fusion.cpu()
        programs = [program(group, i) for i in range(len(group["codes"]))]
        lines = [line.split() for _, out in await fusion.run_all(run, programs) for line in out.splitlines()]
        valid = sum(line[0] == "VALID" and line[2] == "True" for line in lines)
        passed = sum(line[0] == "PASS" for line in lines)
        print(valid, passed, fusion.cpu() - before, flush=True)


asyncio.run(main())
