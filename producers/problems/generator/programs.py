"""Programs as trees: one function of the kind that the built-in problems have.

A tree is simpler to change than Python's own ast: the children of a node are
in one tuple, in the order of the text. Trees are immutable; a changed program
shares the nodes that did not change.
"""

import ast
from typing import NamedTuple


class Node(NamedTuple):
    """One node. In the comments of KINDS, [] are its children."""

    kind: str
    children: tuple = ()
    value: object = None
    names: tuple = ()  # the variables of a loop

    def with_child(self, i, child):
        return self._replace(children=self.children[:i] + (child,) + self.children[i + 1:])

    def with_value(self, value):
        return self._replace(value=value)


# The kinds of expressions, then of statements:
#
# int, str, const (True, False, None), name   value
# list        [items]
# comp, gen   list comprehension, generator over names [element, iterable, condition or None]
# binary      value: + - * // % [left, right]
# compare     value: < <= > >= == != in, not in [left, right]
# and, or     [left, right]
# not, negate [operand]
# ternary     [then, condition, otherwise]
# call        value: the function [arguments]
# method      value: the method [receiver, arguments]
# keyword     value: the argument's name [value]
# index       [receiver, index]
# slice       [receiver, low, high, step], the last three None when absent
#
# block       [statements]
# return      [value]
# if          [condition, block]
# for         over names [iterable, block]
# =, +=       value: the variable [value]

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
_COMPARE = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in",
}

# How tightly an expression binds; all others bind tightest.
_TERNARY, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY, _POSTFIX = range(9)
_LEVELS = {"ternary": _TERNARY, "or": _OR, "and": _AND, "not": _NOT, "compare": _COMPARISON, "negate": _UNARY}


class Program(NamedTuple):
    params: tuple
    body: Node

    def header(self):
        return "def solve(" + ", ".join(self.params) + "):"

    def source(self):
        """The program as Python source that ends without a newline."""
        return self.header() + _block(self.body, "\n    ")


def parse(source):
    """The program of a source with one function."""
    (function,) = ast.parse(source).body
    return Program(tuple(argument.arg for argument in function.args.args), _tree_of_block(function.body))


def _tree_of_block(statements):
    return Node("block", tuple(map(_tree, statements)))


def _names(target):
    return tuple(name.id for name in target.elts) if isinstance(target, ast.Tuple) else (target.id,)


def _tree(n):
    if n is None:
        return None
    if isinstance(n, ast.Constant):
        if n.value is None or isinstance(n.value, bool):
            return Node("const", value=n.value)
        return Node(type(n.value).__name__, value=n.value)
    if isinstance(n, ast.Name):
        return Node("name", value=n.id)
    if isinstance(n, ast.List):
        return Node("list", tuple(map(_tree, n.elts)))
    if isinstance(n, (ast.ListComp, ast.GeneratorExp)):
        (loop,) = n.generators
        condition = _tree(loop.ifs[0]) if loop.ifs else None
        kind = "comp" if isinstance(n, ast.ListComp) else "gen"
        return Node(kind, (_tree(n.elt), _tree(loop.iter), condition), names=_names(loop.target))
    if isinstance(n, ast.BinOp):
        return Node("binary", (_tree(n.left), _tree(n.right)), _BINARY[type(n.op)])
    if isinstance(n, ast.Compare):
        (operator,), (right,) = n.ops, n.comparators
        return Node("compare", (_tree(n.left), _tree(right)), _COMPARE[type(operator)])
    if isinstance(n, ast.BoolOp):
        kind = "and" if isinstance(n.op, ast.And) else "or"
        left, *rest = map(_tree, n.values)
        for right in rest:
            left = Node(kind, (left, right))
        return left
    if isinstance(n, ast.UnaryOp):
        return Node("not" if isinstance(n.op, ast.Not) else "negate", (_tree(n.operand),))
    if isinstance(n, ast.IfExp):
        return Node("ternary", (_tree(n.body), _tree(n.test), _tree(n.orelse)))
    if isinstance(n, ast.Call):
        keywords = [Node("keyword", (_tree(k.value),), k.arg) for k in n.keywords]
        arguments = tuple([_tree(a) for a in n.args] + keywords)
        if isinstance(n.func, ast.Attribute):
            return Node("method", (_tree(n.func.value),) + arguments, n.func.attr)
        return Node("call", arguments, n.func.id)
    if isinstance(n, ast.Subscript):
        if isinstance(n.slice, ast.Slice):
            return Node("slice", (_tree(n.value), _tree(n.slice.lower), _tree(n.slice.upper), _tree(n.slice.step)))
        return Node("index", (_tree(n.value), _tree(n.slice)))
    if isinstance(n, ast.Return):
        return Node("return", (_tree(n.value),))
    if isinstance(n, ast.If):
        return Node("if", (_tree(n.test), _tree_of_block(n.body)))
    if isinstance(n, ast.For):
        return Node("for", (_tree(n.iter), _tree_of_block(n.body)), names=_names(n.target))
    if isinstance(n, ast.Assign):
        return Node("=", (_tree(n.value),), n.targets[0].id)
    if isinstance(n, ast.AugAssign):
        return Node("+=", (_tree(n.value),), n.target.id)
    raise ValueError("no node for " + ast.dump(n))


def _block(block, newline):
    return "".join(newline + _statement(n, newline) for n in block.children)


def _statement(n, newline):
    first = _text(n.children[0])
    if n.kind == "return":
        return "return " + first
    if n.kind == "if":
        return "if " + first + ":" + _block(n.children[1], newline + "    ")
    if n.kind == "for":
        return "for " + ", ".join(n.names) + " in " + first + ":" + _block(n.children[1], newline + "    ")
    return n.value + " " + n.kind + " " + first


def _level(n):
    if n.kind == "binary":
        return _SUM if n.value in "+-" else _PRODUCT
    return _LEVELS.get(n.kind, _POSTFIX)


def _text(n, least=_TERNARY):
    """The expression's source, in parentheses if it binds more loosely than least."""
    own = _level(n)
    if own < least:
        return "(" + _text(n) + ")"
    kids = n.children
    if n.kind in ("int", "const", "name"):
        return str(n.value)
    if n.kind == "str":
        return "'" + n.value + "'"
    if n.kind == "list":
        return "[" + _items(kids) + "]"
    if n.kind == "comp":
        return "[" + _loop(n) + "]"
    if n.kind == "gen":
        return "(" + _loop(n) + ")"
    if n.kind in ("binary", "and", "or"):
        return _text(kids[0], own) + " " + (n.value or n.kind) + " " + _text(kids[1], own + 1)
    if n.kind == "compare":
        return _text(kids[0], own + 1) + " " + n.value + " " + _text(kids[1], own + 1)
    if n.kind == "not":
        return "not " + _text(kids[0], own)
    if n.kind == "negate":
        return "-" + _text(kids[0], own)
    if n.kind == "ternary":
        return _text(kids[0], _OR) + " if " + _text(kids[1], _OR) + " else " + _text(kids[2])
    if n.kind == "keyword":
        return n.value + "=" + _text(kids[0])
    if n.kind == "call":
        return n.value + _arguments(kids)
    if n.kind == "method":
        return _text(kids[0], _POSTFIX) + "." + n.value + _arguments(kids[1:])
    if n.kind == "index":
        return _text(kids[0], _POSTFIX) + "[" + _text(kids[1]) + "]"
    receiver, low, high, step = kids
    bounds = [_text(bound) if bound else "" for bound in (low, high)]
    return _text(receiver, _POSTFIX) + "[" + ":".join(bounds + ([_text(step)] if step else [])) + "]"


def _items(nodes):
    return ", ".join(map(_text, nodes))


def _loop(n):
    element, iterable, condition = n.children
    text = _text(element) + " for " + ", ".join(n.names) + " in " + _text(iterable, _OR)
    return text + " if " + _text(condition, _OR) if condition else text


def _arguments(arguments):
    if len(arguments) == 1 and arguments[0].kind == "gen":  # needs no parentheses of its own
        return "(" + _loop(arguments[0]) + ")"
    return "(" + _items(arguments) + ")"
