"""Runs a golden test that is more than `assert call == literal` inside the
candidate's own process. Its verdict is weaker evidence and is labelled so.

A script is one assert, a check(candidate) script, functions named test_*,
classes named Test* or unittest classes. It sees the program's names, and can
import them from the module `solution`. Its `pytest` is codea1_pytests.
"""

import ast
import codea1_pytests as pytests
import inspect
import sys


MAX_ERROR_CHARS = 300


def describe(error):
    """Returns the exception's type and message, even if its __str__ fails."""
    name = type(error).__name__
    try:
        message = str(error)
    except BaseException:
        message = "(no message)"
    return (name + ": " + message if message else name)[:MAX_ERROR_CHARS]


class Failed(Exception):
    """An assertion of the script failed; the argument is the error."""


def run(source, program):
    """Runs source in a copy of the program's namespace: its definitions change
    neither the program nor the next script. Returns "True"."""
    run_in(source, dict(program))
    return "True"


def run_in(source, namespace, asserts=True):
    """Runs source and the tests that it defines in namespace. Returns the names that
    it defined. Without asserts, the assert statements of source have no effect."""
    sys.modules["pytest"] = pytests
    before = dict(namespace)
    try:
        code = source if asserts else Indifferent().visit(ast.parse(source))
        exec(compile(code, "test.py", "exec", 0, True), namespace)
        defined = {n: v for n, v in namespace.items() if n not in before or v is not before[n]}
        fixtures = find_fixtures(defined)
        for name, value in defined.items():
            run_test(name, value, fixtures)
    except AssertionError as error:
        raise memory_error(error) or Failed(error)
    return defined


def memory_error(error):
    """Returns the MemoryError that a script made an assertion of, or None: a limit is
    no other verdict."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error


class Indifferent(ast.NodeTransformer):
    """Replaces each assert by the computation of its condition, without effect."""

    def visit_Assert(self, node):
        handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, [ast.Pass()])
        compute = ast.Try([ast.Expr(node.test)], [handler], [], [])
        return ast.fix_missing_locations(ast.copy_location(compute, node))


def find_fixtures(defined):
    marks = [(getattr(v, "codea1_fixture", None), v) for v in defined.values() if inspect.isfunction(v)]
    return {mark[0]: value for mark, value in marks if mark}


def run_test(name, value, fixtures):
    unittest = sys.modules.get("unittest")  # None if the script has not imported it
    if unittest and isinstance(value, type) and issubclass(value, unittest.TestCase):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(value).run(result)
        if result.failures and "MemoryError" in result.failures[0][1]:
            raise MemoryError
        if result.failures:
            raise Failed(AssertionError(last_line(result.failures[0][1])))
        if result.errors:
            raise RuntimeError(last_line(result.errors[0][1]))
    elif name.startswith("Test") and isinstance(value, type) and value.__module__ == "solution":
        run_class(value, fixtures)
    elif name.startswith("test") and inspect.isfunction(value):
        pytests.run(value, fixtures)


def run_class(value, fixtures):
    """Runs the test_* methods of a class, each on an object of its own."""
    members = {n: getattr(value, n) for n in dir(value)}
    fixtures = dict(fixtures, **find_fixtures(members))
    if "setup_class" in members:
        members["setup_class"]()
    for name, method in members.items():
        if name.startswith("test") and inspect.isfunction(method):
            pytests.run(method, fixtures, value)
    if "teardown_class" in members:
        members["teardown_class"]()


def last_line(trace):
    return trace.strip().rpartition("\n")[2]
