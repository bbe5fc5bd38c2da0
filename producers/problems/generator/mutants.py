"""Mutants: programs that differ from a correct one by a single slip.

The slips are of the kind that people and models make: a boundary off by one,
a forgotten filter, a reducer that fails on empty input. Whether a mutant
behaves differently is for the caller to find out: it runs it.
"""

from programs import Node, Program

# A slip of one of these kinds leaves a part of the question out. A program that
# behaves the same without that part has a question that says too much.
OMISSIONS = {
    "forgot_filter", "forgot_condition", "forgot_map", "forgot_abs", "forgot_branch", "forgot_sort", "forgot_distinct",
    "forgot_reverse",
}

_BOUNDARIES = {">": ">=", ">=": ">", "<": "<=", "<=": "<"}
_DIRECTIONS = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
_NEGATIONS = {"==": "!=", "!=": "==", "in": "not in", "not in": "in"}
_OPERATORS = {"+": "-", "-": "+", "*": "+", "%": "//", "//": "%"}
_METHODS = {
    "upper": "lower", "lower": "upper", "isupper": "islower", "islower": "isupper", "isdigit": "isalpha", "isalpha": "isdigit",
    "startswith": "endswith", "endswith": "startswith",
}
_FUNCTIONS = {
    "max": ("min", "reducer"), "min": ("max", "reducer"), "any": ("all", "quantifier"), "all": ("any", "quantifier"),
}


def mutants_of(program):
    """Pairs of a bug and a program, without repetitions, in the order of the text.

    Some may behave like the program itself.
    """
    seen = {program.source()}
    for bug, mutant in slips(program):
        source = mutant.source()
        if source not in seen:
            seen.add(source)
            yield bug, mutant


def slips(program):
    """Like mutants_of, with repetitions."""
    for bug, body in _slips_below(program.body, "constant"):
        yield bug, Program(program.params, body)


def _slips_below(n, number):
    """Pairs of a bug and the changed node, for the node and everything below it.

    number is the bug that a changed int stands for here, "" where ints stay.
    """
    for changed, bug in _slips_of(n, number):
        yield bug, changed
    for i, child in enumerate(n.children):
        if child:
            for bug, changed in _slips_below(child, _number_below(n, i, number)):
                yield bug, n.with_child(i, changed)


def _number_below(n, i, number):
    if n.kind == "slice" and i > 0:
        return "" if n.children[3] else "slice_bound"  # _slice_slips moves the start of a slice with steps
    if n.kind == "call" and n.value == "range":
        return "range_bound"
    if n.kind == "index" and i == 1 or n.kind == "keyword":
        return ""
    if n.kind == "negate" and number == "constant" or n.kind == "binary" and number == "range_bound":
        return ""  # _slips_of changes them as a whole: nobody writes -0 or n + 0
    if n.kind == "compare" and _is_parity(n):
        return ""
    return number


def _is_parity(n):
    """Whether n compares a remainder with 0 or 1. _compare_slips changes its ints as a whole."""
    left, right = n.children
    return left.kind == "binary" and left.value == "%" and right.kind == "int" and right.value < 2


def _slips_of(n, number):
    """Pairs of a changed node and a bug, for the node alone."""
    kids = n.children
    if n.kind == "int":
        return _number_slips(n, number)
    if n.kind == "str":
        return [(n.with_value("aeiou"), "letter_case")] if n.value == "aeiouAEIOU" else []
    if n.kind == "compare":
        return _compare_slips(n)
    if n.kind == "and":
        return [(kids[0], "forgot_condition"), (kids[1], "forgot_condition"), (n._replace(kind="or"), "and_or")]
    if n.kind == "ternary":
        then, condition, otherwise = kids
        swapped = n._replace(children=(otherwise, condition, then))
        return [(swapped, "swapped_branches"), (then, "forgot_branch"), (otherwise, "forgot_branch")]
    if n.kind == "block":
        return _block_slips(n)
    if n.kind == "negate":
        if number == "slice_bound":
            return [(kids[0], "slice_bound")]  # xs[2:] for xs[-2:]
        zero = [(_integer(0), "constant")] if kids[0].kind == "int" else []
        return [(kids[0], "sign")] + zero
    if n.kind == "binary":
        if number == "range_bound" and n.value == "+":
            return [(kids[0], "range_bound")]
        return [(n.with_value(_OPERATORS[n.value]), "operator")]
    if n.kind in ("comp", "gen"):
        return _comprehension_slips(n)
    if n.kind == "for":
        return _skips(n, 0)
    if n.kind == "slice":
        return _slice_slips(n)
    if n.kind == "call":
        return _call_slips(n)
    if n.kind == "method" and n.value in _METHODS:
        return [(n.with_value(_METHODS[n.value]), "string_method")]
    return []


def _integer(value):
    return Node("int", value=value)


def _number_slips(n, number):
    if not number:
        return []
    values = [n.value + 1] + ([n.value - 1] if n.value > 0 else [])
    return [(_integer(value), number) for value in values]


def _compare_slips(n):
    tables = ((_BOUNDARIES, "boundary"), (_DIRECTIONS, "direction"), (_NEGATIONS, "negation"))
    found = [(n.with_value(table[n.value]), bug) for table, bug in tables if n.value in table]
    if _is_parity(n):
        remainder, right = n.children
        divisor = remainder.children[1]
        if divisor.kind == "int" and divisor.value == 2:
            found.append((n.with_child(1, _integer(1 - right.value)), "negation"))
        elif divisor.kind == "int":
            found.append((n.with_child(0, remainder.with_child(1, _integer(divisor.value + 1))), "constant"))
    return found


def _block_slips(n):
    """Leaves out each if, or its condition."""
    found = []
    for i, child in enumerate(n.children):
        if child.kind == "if":
            found.append((_splice(n, i, child.children[1].children), "forgot_branch"))
            if len(n.children) > 1:
                found.append((_splice(n, i, ()), "forgot_branch"))
    return found


def _splice(block, i, statements):
    """The block with other statements in place of statement i, without those that would follow a return."""
    spliced = block.children[:i] + statements
    if not spliced or spliced[-1].kind != "return":
        spliced += block.children[i + 1:]
    return block._replace(children=spliced)


def _comprehension_slips(n):
    element, _, condition = n.children
    found = []
    if condition:
        found.append((n.with_child(2, None), "forgot_filter"))
    if len(n.names) == 1 and element.kind not in ("name", "compare"):
        found.append((n.with_child(0, Node("name", value=n.names[0])), "forgot_map"))
    return found + _skips(n, 1)


def _skips(n, i):
    """Leaves out the first or the last item of the iterable at child i, if it is a list or string."""
    iterable = n.children[i]
    if iterable.kind != "name" and not (iterable.kind == "method" and iterable.value == "split"):
        return []
    last = Node("negate", (_integer(1),))
    return [
        (n.with_child(i, Node("slice", (iterable, _integer(1), None, None))), "skipped_item"),
        (n.with_child(i, Node("slice", (iterable, None, last, None))), "skipped_item"),
    ]


def _slice_slips(n):
    receiver, low, _, step = n.children
    if not step:
        return []  # its bounds slip as ints
    if step.kind == "negate":
        return [(receiver, "forgot_reverse")]
    return [(n.with_child(1, None if low else _integer(1)), "slice_bound"), (receiver, "forgot_filter")]


def _call_slips(n):
    found = []
    if n.value in _FUNCTIONS:
        name, bug = _FUNCTIONS[n.value]
        found.append((n.with_value(name), bug))
    last = n.children[-1]
    if len(n.children) > 1 and last.kind == "keyword" and last.value in ("default", "reverse"):
        bug = "empty_input" if last.value == "default" else "sort_order"
        found.append((n._replace(children=n.children[:-1]), bug))
    argument = n.children[0]
    if n.value in ("sum", "max", "min", "sorted", "set", "len"):
        found += _skips(n, 0)
    if n.value == "abs":
        found.append((argument, "forgot_abs"))
    elif n.value == "set":
        found.append((_list_of(argument), "forgot_distinct"))
    elif n.value == "sorted":
        if not (argument.kind == "call" and argument.value == "set"):  # a set has no order
            found.append((_list_of(argument), "forgot_sort"))
        if len(n.children) == 1:
            reverse = Node("keyword", (Node("const", value=True),), "reverse")
            found.append((n._replace(children=(argument, reverse)), "sort_order"))
    elif n.value == "sum" and argument.kind in ("gen", "name"):
        found.append((Node("call", (_list_of(argument),), "len"), "reducer"))
    elif n.value == "len" and argument.kind == "comp":
        found.append((n.with_value("sum"), "reducer"))
    return found


def _list_of(n):
    """An expression for the list of an iterable's items."""
    if n.kind == "gen":
        return n._replace(kind="comp")
    if n.kind in ("name", "comp", "slice"):
        return n
    return Node("call", (n,), "list")
