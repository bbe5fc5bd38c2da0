"""Branches of a program, and how difficult it is to read.

load(text) marks the branches of a program, load(text, True) its lines as well. measure() returns the
number of branches, the difficulty, and the number of lines. taken(call) returns which ones a call or a script
takes: a text with a 1 or a 0 for each branch and then for each line.
Each call has a program of its own, so that it does not depend on the calls before it, which
a program may remember. A branch is one of two ways: of a condition
(if, elif, while, a conditional expression, a condition of a comprehension), of an operand
of `and` and `or` before the last, or of a loop, which has an item or ends. An except
clause and a case have one way each. A line is one on which a statement begins, other than a docstring; the lines
that run when the program is loaded count as taken. The text of a program has the same branches under
every version of Python.
"""
import ast
import math

WAY, LOOP, MARK, LINE = "__codea1_way__", "__codea1_loop__", "__codea1_mark__", "__codea1_line__"  # not renamed in classes
MOST = 256  # branches
MOST_LINES = 4096

source, program = "", None
seen, names = set(), []
seen_lines, lines = set(), []


class Marker(ast.NodeTransformer):
    """Marks the branches of a program, in the order of the visit."""

    def number(self, ways, text):
        names.extend([text] * ways)
        return ast.Constant(len(names) - ways)

    def call(self, name, number, *values):
        return ast.Call(ast.Name(name, ast.Load()), [number, *values], [])

    def way(self, node, text):
        if isinstance(node, ast.Constant):
            return node
        number = self.number(2, text)
        return ast.copy_location(self.call(WAY, number, self.visit(node)), node)

    def condition(self, node):
        node.test = self.way(node.test, type(node).__name__)
        for field in ("body", "orelse"):
            part = getattr(node, field)
            setattr(node, field, [self.visit(p) for p in part] if isinstance(part, list) else self.visit(part))
        return node

    visit_If = visit_While = visit_IfExp = condition

    def visit_BoolOp(self, node):
        *first, last = node.values
        node.values = [self.way(v, "operand") for v in first] + [self.visit(last)]
        return node

    def loop(self, node):
        number = self.number(2, "loop")
        node.iter = ast.copy_location(self.call(LOOP, number, self.visit(node.iter)), node.iter)

    def visit_For(self, node):
        self.loop(node)
        for field in ("body", "orelse"):
            setattr(node, field, [self.visit(p) for p in getattr(node, field)])
        return node

    def visit_comprehension(self, node):
        if node.is_async:
            return self.generic_visit(node)
        self.loop(node)
        node.ifs = [self.way(test, "comprehension") for test in node.ifs]
        return node

    def marked(self, node):
        number = self.number(1, type(node).__name__)
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(self.call(MARK, number)), node.body[0]))
        return node

    visit_ExceptHandler = visit_match_case = marked


def way(number, value):
    seen.add(number + (not value))
    return value


def loop(number, items):
    for item in items:
        seen.add(number)
        yield item
    seen.add(number + 1)


def load(text, with_lines=False):
    global source, program
    source = text
    tree = ast.parse(text)
    if with_lines:
        mark_lines(tree)
    tree = ast.fix_missing_locations(Marker().visit(tree))
    program = compile(tree, "program", "exec")


def mark_lines(tree):
    """Marks each statement with its line. A docstring and an import from __future__ stay first."""
    found = set()
    for node in list(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if not isinstance(statements, list):
                continue
            marked = []
            for at, statement in enumerate(statements):
                text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
                if not (text and at == 0) and not future:
                    mark = ast.Call(ast.Name(LINE, ast.Load()), [ast.Constant(statement.lineno)], [])
                    marked.append(ast.copy_location(ast.Expr(mark), statement))
                    found.add(statement.lineno)
                marked.append(statement)
            setattr(node, field, marked)
    lines.extend(sorted(found)[:MOST_LINES])


def measure():
    return min(len(names), MOST), difficulty(source), len(lines)


def taken(call):
    namespace = {"__name__": "program", WAY: way, LOOP: loop, MARK: seen.add, LINE: seen_lines.add}
    seen_lines.clear()
    exec(program, namespace)
    seen.clear()
    exec(call, namespace)
    return "".join(["01"[i in seen] for i in range(min(len(names), MOST))] + ["01"[line in seen_lines] for line in lines])


# The counts of Halstead are those of operators with their operands, as radon has them.
def difficulty(text):
    """How difficult a program is, from 0 to 1: the geometric mean of Halstead's difficulty
    h as h/(h+10), and of the maintainability index as 1 - index/100."""
    tree = ast.parse(text)
    operators, operands, decisions = [], [], 1
    for node in ast.walk(tree):
        kind = type(node)
        if kind is ast.BinOp or kind is ast.AugAssign:
            operators.append(type(node.op).__name__)
            operands += [node.left, node.right] if kind is ast.BinOp else [node.target, node.value]
        elif kind is ast.UnaryOp:
            operators.append(type(node.op).__name__)
            operands.append(node.operand)
        elif kind is ast.BoolOp:
            operators.append(type(node.op).__name__)
            operands += node.values
            decisions += len(node.values) - 1
        elif kind is ast.Compare:
            operators += [type(op).__name__ for op in node.ops]
            operands += [node.left, *node.comparators]
        elif kind in (ast.If, ast.While, ast.For, ast.IfExp, ast.ExceptHandler, ast.comprehension):
            decisions += 1
    different = len({ast.dump(node) for node in operands})
    halstead = len(set(operators)) * len(operands) / (2 * different) if different else 0.0
    vocabulary, length = len(set(operators)) + different, len(operators) + len(operands)
    volume = length * math.log2(vocabulary) if vocabulary else 0.0
    lines = sum(bool(line.strip()) and not line.strip().startswith("#") for line in text.splitlines())
    index = 171 - 5.2 * math.log(max(volume, 1)) - 0.23 * decisions - 16.2 * math.log(max(lines, 1))
    return math.sqrt(halstead / (halstead + 10) * (1 - min(max(index / 171, 0), 1)))
