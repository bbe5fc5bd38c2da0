"""Mutants of a program: each is the program with one change.

mutants(text) returns (operator, program) for each, sample(text, most) some of them. The operators are those of Cosmic
Ray 8 without arguments. A change replaces the bytes between two places by a text, so
operators bind as they do in that text. It is (operator, start, end, text).
"""
import ast
import io
import tokenize

BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.RShift: ">>", ast.LShift: "<<", ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^",
}
UNARY = {ast.UAdd: "+", ast.USub: "-", ast.Invert: "~", ast.Not: "not"}
COMPARISONS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not",
}
WITH_NUMBER = ["==", "!=", "<", "<=", ">", ">="]
WITH_NONE = {"==": ["is not"], "!=": ["is"], "is": ["is not"], "is not": ["is"]}
GROWING = {"**", "<<"}  # make numbers that fill the memory
WORDS = {"True": "False", "False": "True", "and": "or", "or": "and", "break": "continue", "continue": "break"}
SKIPPED = {tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT}


class Source:
    """A program as text, as tokens with byte offsets, and as a tree."""

    def __init__(self, text):
        self.tree = ast.parse(text)
        lines = io.StringIO(text).readlines()
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line.encode()))

        def offset(place):
            row, column = place
            before = lines[row - 1][:column] if row <= len(lines) else ""
            return self.starts[min(row - 1, len(lines))] + len(before.encode())

        self.tokens = [
            (t.type, t.string, offset(t.start), offset(t.end))
            for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in SKIPPED
        ]
        self.quoted = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.JoinedStr):  # the places of the nodes inside are wrong before Python 3.12
                self.quoted.append((self.start(node), self.end(node)))

    def start(self, node):
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node):
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def inside_text(self, start):
        return any(a <= start < b for a, b in self.quoted)

    def between(self, start, end, operator):
        """The bytes of the first operator between two places."""
        words = operator.split()
        found = [t for t in self.tokens if start <= t[2] and t[3] <= end]
        for i in range(len(found) - len(words) + 1):
            if [t[1] for t in found[i:i + len(words)]] == words:
                return found[i][2], found[i + len(words) - 1][3]
        return None


def changes_of_node(source, node):
    """The changes of an expression or a statement."""
    if isinstance(node, ast.BinOp):
        operator = BINARY.get(type(node.op))
        place = operator and source.between(source.end(node.left), source.start(node.right), operator)
        if place:
            for other in BINARY.values():
                if other != operator:
                    yield ("binary", *place, other)
    elif isinstance(node, ast.UnaryOp):
        operator = UNARY[type(node.op)]
        place = source.start(node), source.start(node) + len(operator)
        others = [] if operator == "not" else [u + " " * (u == "not") for u in UNARY.values() if u != operator]
        for other in others + [""] * (operator != "+"):
            yield ("unary", *place, other)
    elif isinstance(node, ast.Compare):
        left = node.left
        for op, right in zip(node.ops, node.comparators):
            operator = COMPARISONS.get(type(op))
            place = operator and source.between(source.end(left), source.start(right), operator)
            left = right
            if not place:
                continue
            allowed = list(COMPARISONS.values())
            if isinstance(right, ast.Constant) and right.value is None:
                allowed = WITH_NONE.get(operator, [])
            elif isinstance(right, ast.Constant) and type(right.value) in (int, float, complex):
                allowed = WITH_NUMBER
            for other in allowed:
                if other != operator:
                    yield ("comparison", *place, " " + other + " ")
    elif isinstance(node, (ast.If, ast.While, ast.Assert, ast.IfExp)):
        start = source.start(node.test)
        before = [t for t in source.tokens if t[3] <= start]
        while before and before[-1][1] == "(" and not isinstance(node, ast.IfExp):
            start = before.pop()[2]
        keyword = before[-1][1] if before else ""
        if keyword != "elif":
            yield ("not", start, start, " not ")
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield ("no iteration", source.start(node.iter), source.end(node.iter), "[]")
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        names = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        for name in names:
            if isinstance(name, ast.Name):
                yield ("exception", source.start(name), source.end(name), "NoSuchException")
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        for decorator in node.decorator_list:
            line = source.starts[decorator.lineno - 1]
            yield ("decorator", line, source.end(decorator), "")


def changes_of_token(token):
    """The changes of a number or a word."""
    kind, text, start, end = token
    if kind == tokenize.NUMBER:
        value = ast.literal_eval(text)
        for change in (1, -1):
            yield ("number", start, end, " " + str(value + change))
    elif kind == tokenize.NAME and text in WORDS:
        yield ("word", start, end, WORDS[text])


def mutants(text):
    source = Source(text)
    return programs(text, changes(source))


def sample(text, most):
    source = Source(text)
    loops = [(source.start(n), source.end(n)) for n in ast.walk(source.tree) if isinstance(n, ast.While)]
    harmless = [
        c for c in changes(source)
        if c[3].strip() not in GROWING and not any(start <= c[1] < end for start, end in loops)
    ]
    different = list({program: (operator, program) for operator, program in programs(text, harmless) if program != text}.values())
    count = min(most, len(different))
    return [different[i * len(different) // count] for i in range(count)]


def changes(source):
    found = []
    for node in ast.walk(source.tree):
        if hasattr(node, "lineno") and not source.inside_text(source.start(node)):
            found.extend(changes_of_node(source, node))
    for token in source.tokens:
        if not source.inside_text(token[2]):
            found.extend(changes_of_token(token))
    found.sort(key=lambda change: change[1:3])
    return found


def programs(text, found):
    code = text.encode()
    return [(operator, (code[:start] + new.encode() + code[end:]).decode()) for operator, start, end, new in found]
