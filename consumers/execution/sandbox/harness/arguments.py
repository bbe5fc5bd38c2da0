"""Makes the arguments of a call apart from the names of the program.

A program may have a `max` or a `range` of its own, and `from math import *` replaces
`pow`. The arguments of a test never use those: in them the name of a built-in
function means Python's own, and inf and nan are floats. So every program is called
with the same arguments. The names are kept from before the first program runs.

A varied child (vary) runs a ground truth or an expression in another layout:
objects have other addresses, sets of strings and objects have another order, the
clock is ahead and random starts elsewhere. The fork server has another hash seed. A
value that differs there is no expectation.
"""

import ast
import builtins
import math
import random

OWN = {name: value for name, value in vars(builtins).items() if name[0] != "_"}
OWN.update(inf=math.inf, nan=math.nan)
CHANGES = "(lambda *_a, **_k: (%s(*_a, **_k), _a, _k))"  # also returns the arguments after the call
GATHER = "(lambda *_a, **_k: (_a, _k))"
AHEAD_SECONDS = 400 * 86_400 + 12_345
SCATTERED = 60  # blocks of each size
SAME_HASH = (int, float, bool, complex, range)  # in every process


def names(program, entry):
    """Returns the names for an expression of a test that is no call of the entry
    point. The entry point's name takes precedence over Python's own."""
    root = entry.partition(".")[0].partition("(")[0]
    found = {**program, **OWN}
    if root in program:
        found[root] = program[root]
    return found


def split(call, entry):
    """Returns the function that a call names, and the text of its arguments in
    brackets. Returns None if the text is no call of the entry point."""
    for function in (entry, CHANGES % entry):
        if call.startswith(function + "("):
            tree = ast.parse(call, mode="eval").body
            end = len(function.encode()) - (function[0] == "(")  # a node ends before its brackets
            if type(tree) is ast.Call and tree.func.end_col_offset == end:
                return function, call[len(function):]
    return None


def make(text, program, other=False):
    """Returns the arguments in a list and a dict, and whether a set among them is in
    another order than usual."""
    (positional, named), moved = compute(GATHER + text, {**program, **OWN}, other)
    return [apart(value) for value in positional], {name: apart(value) for name, value in named.items()}, moved


def apart(value):
    """Returns a copy without shared parts, as if a literal had made it: `[[0] * 2] * 2`
    is two separate lists at any size."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind([apart(item) for item in value])
    if kind is dict:
        return {key: apart(item) for key, item in value.items()}
    return kind(value) if kind is set else value


def compute(text, namespace, other=False):
    """Returns the value of an expression, and whether it made a set in another order
    than usual. It does so only if other is true."""
    if not other:
        return eval(compile(text, "<test>", "eval", 0, True), namespace), False
    reorder = Reorder()
    tree = ast.fix_missing_locations(reorder.visit(ast.parse(text, mode="eval")))
    namespace["_codea1_other"] = reorder.value
    return eval(compile(tree, "<test>", "eval", 0, True), namespace), reorder.moved


class Reorder(ast.NodeTransformer):
    """Gives each set that an expression makes another order, unless its items have the
    same hash in every process."""

    moved = False

    def reordered(self, node):
        self.generic_visit(node)
        return ast.Call(ast.Name("_codea1_other", ast.Load()), [node], [])

    visit_Set = visit_SetComp = visit_BinOp = visit_Call = reordered

    def value(self, made):
        other = OTHER.get(type(made))
        if other is None or len(made) < 2 or all(map(has_same_hash, made)):
            return made
        self.moved = True
        return other(made)


def other_order(kind):
    """Returns a kind of set that yields its items in the opposite order."""

    def items(self):
        return list(kind.__iter__(self))[::-1]

    def pop(self):
        item = items(self)[0]
        self.remove(item)
        return item

    members = {"__iter__": lambda self: iter(items(self)), "__repr__": lambda self: repr(items(self)), "pop": pop}
    return type(kind.__name__, (kind,), members)


OTHER = {set: other_order(set), frozenset: other_order(frozenset)}


def has_same_hash(value):
    return type(value) in SAME_HASH or type(value) in (tuple, frozenset) and all(map(has_same_hash, value))


def vary():
    """Makes this process differ from others in addresses, hash seed and time."""
    scatter(random.Random(1))
    move_clock()


def scatter(chance, kept=[]):
    """Makes Python give new objects addresses in another order."""
    for size in range(16, 513, 16):
        blocks = [object() if size == 16 else float(number) if size == 32 else bytes(size - 34) for number in range(SCATTERED)]
        kept.append(blocks[::4])  # otherwise Python lays out their memory anew
        chance.shuffle(blocks)
        while blocks:
            blocks.pop()


def move_clock():
    import datetime
    import time

    ahead, real, real_ns, strftime, asctime = datetime.timedelta(seconds=AHEAD_SECONDS), time.time, time.time_ns, time.strftime, time.asctime
    time.time = lambda: real() + AHEAD_SECONDS
    time.time_ns = lambda: real_ns() + AHEAD_SECONDS * 10**9
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, lambda seconds=None, tell=getattr(time, name): tell(time.time() if seconds is None else seconds))
    time.strftime = lambda form, when=None: strftime(form, time.localtime() if when is None else when)
    time.asctime = lambda when=None: asctime(time.localtime() if when is None else when)

    class Ahead(datetime.datetime):  # its today asks time.time
        @classmethod
        def now(cls, tz=None):
            return super().now(tz) + ahead

        @classmethod
        def utcnow(cls):
            return super().utcnow() + ahead

    Ahead.__name__, Ahead.__qualname__, Ahead.__module__ = "datetime", "datetime", "datetime"
    datetime.datetime = Ahead
