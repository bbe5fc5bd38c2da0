"""Writes three samples for each task of a release file, of mixed quality:

    python3 samples.py RELEASE.jsonl SEED > samples.jsonl

They are the ground truth, the ground truth with one changed operator or constant, and
a program that is empty, raises or returns None. The same seed gives the same samples.
"""

import ast
import json
import random
import sys

OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In,
}


def changes(tree):
    """Returns functions that change one place of the tree each. Loops may be changed
    into endless ones only by a constant of 0: such steps are left out."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in OPERATORS:
            found.append(lambda n=node: setattr(n, "op", OPERATORS[type(n.op)]()))
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
            found.append(lambda n=node: n.ops.__setitem__(0, OPERATORS[type(n.ops[0])]()))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            found.append(lambda n=node: setattr(n, "value", n.value + 1))
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            found.append(lambda n=node: setattr(n, "value", not n.value))
    return found


def mutated(source, chance):
    tree = ast.parse(source)
    found = changes(tree)
    if not found:
        return source
    chance.choice(found)()
    return ast.unparse(ast.fix_missing_locations(tree))


def main(path, seed):
    chance = random.Random(int(seed))
    for line in open(path):
        task = json.loads(line)
        truth = task["prompt"] + task["canonical_solution"]
        broken = chance.choice(["", "raise ValueError('no')\n", "def %s(*a):\n    return None\n" % task["entry_point"], "def broken(:\n"])
        for solution in (truth, mutated(truth, chance), broken):
            print(json.dumps({"task_id": task["task_id"], "solution": solution}))


if __name__ == "__main__":
    main(*sys.argv[1:])
