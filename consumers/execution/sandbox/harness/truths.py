"""Describes a ground truth: its parameters, and whether its values can
depend on addresses, the hash seed, the time or chance."""

import ast
import codea1_values as values
import inspect

CONSTANTS = (type(None), bool, int, float, complex, str, bytes)
MAX_DEFAULT_BYTES = 1000

# A program without these returns the same value in every process: nothing else orders
# values by a hash, shows an address, or knows the time.
VARYING_NAMES = frozenset(
    "set frozenset id hash object repr ascii super type vars dir globals locals getattr eval exec compile open input __import__ "
    "memoryview random randint shuffle sample choice choices urandom time time_ns now today utcnow default_rng".split()
)
SAME_MODULES = frozenset(
    "__future__ abc array bisect cmath collections copy dataclasses decimal enum fractions functools heapq itertools math numbers "
    "operator re statistics string textwrap typing".split()
)
SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)


def describe(code, entry, namespace, max_bytes):
    """Returns the literal text of the parameters of the entry point, or None, and of
    whether the program may return different values in different processes."""
    return values.encode((parameters(entry, namespace), may_vary(code)), max_bytes)


def parameters(entry, namespace):
    """Returns name, kind and default of each parameter: default is None if there is
    none, and an empty text if it is no constant."""
    try:
        found = inspect.signature(eval(entry, dict(namespace))).parameters.values()
        return [(p.name, p.kind.name, None if p.default is p.empty else constant(p.default)) for p in found]
    except BaseException:  # such as one of the program
        return None


def constant(value):
    try:
        return values.encode(value, MAX_DEFAULT_BYTES) if is_constant(value) else ""
    except values.Uncomparable:
        return ""


def is_constant(value):
    return type(value) in CONSTANTS or type(value) in (tuple, frozenset) and all(map(is_constant, value))


def may_vary(code):
    views = operators = False
    for node in ast.walk(ast.parse(code)):
        kind = type(node)
        if kind is ast.Name or kind is ast.Attribute:
            name = node.id if kind is ast.Name else node.attr
            if name in VARYING_NAMES or name.startswith("__") and name != "__name__":
                return True
            views = views or name in ("keys", "items")
        elif kind is ast.Set or kind is ast.SetComp:
            return True
        elif kind is ast.Import or kind is ast.ImportFrom:
            modules = [alias.name for alias in node.names] if kind is ast.Import else [node.module or ""]
            if not SAME_MODULES.issuperset(module.partition(".")[0] for module in modules):
                return True
        elif kind is ast.BinOp or kind is ast.AugAssign:
            operators = operators or type(node.op) in SET_OPERATORS
        if views and operators:
            return True
    return False
