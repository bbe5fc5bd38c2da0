"""Reads a test suite with Python's own ast.

parse gives one record per statement with "source" and either "reason", or "call"
and

    "stated"      the literal text of the right-hand side, or
    "expression"  the right-hand side, if its value must be computed
    "place"       why its value may depend on addresses; empty if it does not

If some argument is no literal, it also has

    "function"    the function that is called
    "arguments"   what it is called with: objects with the name of the parameter, if it
                  is given, and either "text", its literal text, or "expression" and
                  "place", as above, and "renamed", the expression with other names for
                  its variables if it has some. One object named * has an expression of a tuple and a
                  dict of all arguments, where the call unpacks some.
"""

import ast
import codea1_values as values

MAX_STATEMENTS = 64
MAX_SOURCE_CHARS = 400
MAX_CALL_CHARS = 4096
MAX_NODES = 2000  # of an expression after its names are resolved

# Besides literals, the arguments and the stated value of a test may use built-in
# functions that only compute, and the methods of literals. With anything else a test
# could tell programs apart by more than the tested function, or change a program.
PURE_BUILTINS = frozenset(
    "abs all any bin bool bytes chr complex dict divmod enumerate filter float frozenset hex int len list map "
    "max min oct ord pow range repr reversed round set slice sorted str sum tuple zip inf nan".split()
)
LITERALS = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range)
# format looks up attributes that a text names.
PURE_METHODS = frozenset(name for kind in LITERALS for name in dir(kind) if name[0] != "_") - {"format", "format_map"}
REFUSED_NODES = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
# These show the address of a function or an iterator: as text, or by the order of a
# set.
PLACE_NAMES = frozenset("repr str set frozenset".split())
PLACE_NODES = (ast.JoinedStr, ast.Set, ast.SetComp)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
VARIABLES = (ast.Lambda, *COMPREHENSIONS)


class Refused(Exception):
    """The statement is not a test; the argument says why."""


def parse(text, entry, trusted, max_value_bytes):
    """Returns the records of a suite's text.

    entry is the entry point's expression, such as `solve` or
    `Solution().solve`; empty accepts any function's name. trusted lifts the
    limits on the names of a test, for tests that no model wrote.
    """
    target = Target(entry) if entry else None
    records, names = [], Names()
    for node, source in statements(text):
        if len(records) == MAX_STATEMENTS:
            break
        if not trusted and names.take(node):
            continue
        record = {"source": source[:MAX_SOURCE_CHARS]}
        try:
            if isinstance(node, str):
                raise Refused(node)
            record.update(test(node, target, names, trusted, max_value_bytes))
        except Refused as error:
            record["reason"] = str(error)
        except (RecursionError, MemoryError, ValueError) as error:
            record["reason"] = "too complex: " + type(error).__name__
        records.append(record)
    return records


def statements(text):
    """Yields (node, source) per top-level statement, or (reason, source).

    Text that does not parse as a whole, such as a response cut at its token
    limit, is parsed piece by piece: a piece starts at each line that is not
    indented and does not close a bracket.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        found = pieces(text)
        if len(found) == 1:
            yield "syntax error: " + str(getattr(error, "msg", error)), found[0].strip()
            return
        for piece in found:
            yield from statements(piece)
        return
    lines = text.replace("\r\n", "\n").replace("\r", "\n").encode().split(b"\n")
    for node in tree.body:
        yield node, segment(lines, node)


def segment(lines, node):
    """Returns the node's source. ast.get_source_segment takes a minute for a line
    of two million characters."""
    found = lines[node.lineno - 1 : node.end_lineno]
    found[-1] = found[-1][: node.end_col_offset]  # before the start: both may be one line
    found[0] = found[0][node.col_offset :]
    return b"\n".join(found).decode()


def pieces(text):
    found = []
    for line in text.splitlines(True):
        starts = not line[0].isspace() and line[0] not in ")]}"
        if starts or not found:
            found.append(line)
        else:
            found[-1] += line
    return found or [text]


class Names(ast.NodeTransformer):
    """The expressions that a suite assigns to names. An assignment is neither a test
    nor discarded. A test that uses the name is read as if it had the expression
    instead, so each use is a new value that no other test has changed."""

    def __init__(self):
        self.values, self.bound, self.size = {}, set(), 0

    def take(self, node):
        """Stores an assignment to one name. Returns whether node is one."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        elif isinstance(node, ast.AnnAssign) and node.value:
            target = node.target
        else:
            return False
        if not isinstance(target, ast.Name):
            return False
        try:
            self.values[target.id] = self.resolve(node.value)
        except (Refused, RecursionError):
            self.values.pop(target.id, None)
        return True

    def resolve(self, tree):
        """Returns the expression with the names in it resolved."""
        if not self.values:
            return tree
        self.bound, self.size = bound_names(tree), sum(1 for _ in ast.walk(tree))
        return self.visit(tree)

    def visit_Name(self, node):
        value = self.values.get(node.id)
        if value is None or node.id in self.bound or not isinstance(node.ctx, ast.Load):
            return node
        self.size += sum(1 for _ in ast.walk(value))
        if self.size > MAX_NODES:
            raise Refused("the expression of the name %s is too large" % node.id[:60])
        return value


class Target:
    """The entry point as an expression."""

    def __init__(self, entry):
        tree = ast.parse(entry, mode="eval").body
        self.name = tree.id if isinstance(tree, ast.Name) else None
        self.text, self.dump = ast.unparse(tree), ast.dump(tree)

    def is_called_by(self, call):
        if isinstance(call.func, ast.Name):
            return call.func.id == self.name
        return self.name is None and ast.dump(call.func) == self.dump


def bound_names(tree):
    """Returns the names that comprehensions and lambdas in an expression define."""
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return bound | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def test(node, target, names, trusted, max_value_bytes):
    if not isinstance(node, ast.Assert):
        raise Refused("not an assert statement")
    compare = node.test
    if not isinstance(compare, ast.Compare) or len(compare.ops) != 1 or not isinstance(compare.ops[0], ast.Eq):
        raise Refused("not one == comparison")
    call, stated = compare.left, compare.comparators[0]
    if not trusted and isinstance(call, ast.Name):
        call = names.resolve(call)
    if not isinstance(call, ast.Call):
        raise Refused("no call on the left of ==")
    if target is None:
        if not isinstance(call.func, ast.Name):
            raise Refused("the left side does not call a function by its name")
    elif not target.is_called_by(call):
        raise Refused("the left side does not call the entry point")
    if not trusted and names.values:
        # Not in call.func: the function's name is the program's.
        call.args = [names.resolve(argument) for argument in call.args]
        call.keywords = [ast.keyword(k.arg, names.resolve(k.value)) for k in call.keywords]
        stated = names.resolve(stated)
    record = call_record(call, target, trusted)
    if not trusted and len(record["call"]) > MAX_CALL_CHARS:
        raise Refused("the call is over the size limit")
    text = literal_text(stated)
    if text is not None and len(text) <= max_value_bytes // 16:  # near the limit, values.encode counts exactly
        record["stated"] = text
        return record
    try:
        record["stated"] = values.encode(ast.literal_eval(stated), max_value_bytes)
    except values.Uncomparable as error:
        raise Refused("the stated value is " + str(error))
    except (ValueError, TypeError):
        check_pure(stated)
        record.update(expression=ast.unparse(stated), place=shows_place(stated))
    return record


def call_record(call, target, trusted):
    """Returns the part of a record that describes the call. The call is written as
    ast.unparse writes it."""
    function = target.text if target else call.func.id
    given = [("", argument) for argument in call.args] + [(k.arg, k.value) for k in call.keywords]
    texts = [None if name is None else literal_text(value) for name, value in given]
    expressions = [text or ast.unparse(value) for text, (_, value) in zip(texts, given)]
    between = ", ".join(["**" + e if name is None else name + "=" + e if name else e for e, (name, _) in zip(expressions, given)])
    record = {"call": function + "(" + between + ")"}
    if trusted or None not in texts:
        return record
    for argument in call.args + call.keywords:
        check_pure(argument)
    if any(name is None or isinstance(value, ast.Starred) for name, value in given):
        whole = "(lambda *a, **k: (a, k))(" + between + ")"
        arguments = [argument_record("*", whole, call.args + [k.value for k in call.keywords])]
    else:
        arguments = [
            argument_record(name, expression, [value]) if text is None else {"name": name, "text": text}
            for text, expression, (name, value) in zip(texts, expressions, given)
        ]
    record.update(function=function, arguments=arguments)
    return record


def argument_record(name, expression, trees):
    record = {"name": name, "expression": expression, "place": next(filter(None, map(shows_place, trees)), "")}
    if any(isinstance(node, VARIABLES) for tree in trees for node in ast.walk(tree)):
        record["renamed"] = ast.unparse(Renamed().visit(ast.parse(expression, mode="eval")))
    return record


class Renamed(ast.NodeTransformer):
    """Gives the variables of lambdas and comprehensions names that depend only on
    their places."""

    def __init__(self):
        self.scope = {}

    def inside(self, names, visit):
        outer = self.scope
        self.scope = {**outer, **{name: "_%d" % (len(outer) + number) for number, name in enumerate(names)}}
        visit()
        self.scope = outer

    def visit_Name(self, node):
        node.id = self.scope.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        node.arg = self.scope[node.arg]
        return node

    def visit_Lambda(self, node):
        arguments = node.args
        arguments.defaults = [self.visit(default) for default in arguments.defaults]
        arguments.kw_defaults = [default and self.visit(default) for default in arguments.kw_defaults]
        parameters = [child for child in ast.walk(arguments) if isinstance(child, ast.arg)]

        def visit():
            for parameter in parameters:
                self.visit(parameter)
            node.body = self.visit(node.body)

        self.inside([parameter.arg for parameter in parameters], visit)
        return node

    def comprehension(self, node):
        first = node.generators[0]
        first.iter = self.visit(first.iter)
        names = [n.id for generator in node.generators for n in ast.walk(generator.target) if isinstance(n, ast.Name)]

        def visit():
            for generator in node.generators:
                generator.target = self.visit(generator.target)
                if generator is not first:
                    generator.iter = self.visit(generator.iter)
                generator.ifs = [self.visit(condition) for condition in generator.ifs]
            for field in ("elt", "key", "value"):
                if hasattr(node, field):
                    setattr(node, field, self.visit(getattr(node, field)))

        self.inside(dict.fromkeys(names), visit)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension


def prefix(before, text):
    return None if text is None else before + text


PLAIN = (int, str, bytes, bool, type(None))


def literal_text(node, depth=values.MAX_DEPTH):
    """Returns the text of a plain literal, as ast.unparse writes it, or None for
    any other expression. Most arguments and stated values are plain, and
    ast.unparse takes ten times as long."""
    kind = type(node)
    if kind is ast.Constant:
        value = node.value
        if type(value) in PLAIN or type(value) is float and value - value == 0:
            return repr(value)
        return None
    if kind is ast.UnaryOp:
        operand = node.operand
        number = type(operand) is ast.Constant and type(operand.value) in (int, float)
        return prefix("-", literal_text(operand)) if number and type(node.op) is ast.USub else None
    if depth == 0:
        return None
    if kind is ast.List or kind is ast.Tuple:
        parts = [literal_text(item, depth - 1) for item in node.elts]
        if None in parts:
            return None
        if kind is ast.List:
            return "[" + ", ".join(parts) + "]"
        return "(" + ", ".join(parts) + (",)" if len(parts) == 1 else ")")
    if kind is ast.Dict and None not in node.keys:
        keys = [literal_text(key, depth - 1) for key in node.keys]
        items = [literal_text(item, depth - 1) for item in node.values]
        if None in keys or None in items:
            return None
        return "{" + ", ".join(map(": ".join, zip(keys, items))) + "}"
    return None


def check_pure(tree):
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, REFUSED_NODES):
            raise Refused("uses " + type(node).__name__)
    for name in free_names(tree, frozenset()):
        if name not in PURE_BUILTINS:
            raise Refused("uses the name " + name[:60])
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr not in PURE_METHODS:
            raise Refused("uses the %sattribute %s" % ("private " if node.attr[0] == "_" else "", node.attr[:60]))


def free_names(tree, bound):
    """Yields the names that an expression uses outside the comprehension or lambda
    that defines them."""
    if isinstance(tree, ast.Name):
        if tree.id not in bound:
            yield tree.id
    elif isinstance(tree, ast.Lambda):
        arguments = tree.args
        for default in arguments.defaults + arguments.kw_defaults:
            if default is not None:
                yield from free_names(default, bound)
        yield from free_names(tree.body, bound | {node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)})
    elif isinstance(tree, COMPREHENSIONS):
        first = tree.generators[0].iter
        yield from free_names(first, bound)
        inside = bound.union(*[bound_names(generator.target) for generator in tree.generators])
        for part in ast.iter_child_nodes(tree):
            for child in ast.iter_child_nodes(part) if isinstance(part, ast.comprehension) else [part]:
                if child is not first:
                    yield from free_names(child, inside)
    else:
        for child in ast.iter_child_nodes(tree):
            yield from free_names(child, bound)


def shows_place(tree):
    """Returns why an expression may depend on the address of a function, which
    differs from process to process; empty if it does not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("keys", "items") and any(isinstance(n, ast.BinOp) for n in ast.walk(tree)):
            return "may make a set of %s in an argument that is no literal" % node.attr
        if isinstance(node, PLACE_NODES):
            return "makes a %s in an argument that is no literal" % type(node).__name__
        if isinstance(node, ast.Name) and node.id in PLACE_NAMES:
            return "uses the name %s in an argument that is no literal" % node.id
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not (is_number(node.left) or is_number(node.right)):
            return "uses % on a possible text in an argument that is no literal"
    return ""


def is_number(node):
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)
