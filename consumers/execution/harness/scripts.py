"""Runs a golden test that is more than `assert call == literal` inside the
candidate's own process, where it is weaker evidence: the pool labels it so.

A script is one assert, a check(candidate) script, functions named test_* or
unittest classes. It sees the program's names, and can import them from the
module `solution`.
"""

import sys


MAX_ERROR_CHARS = 300


def describe(error):
    """The exception's type and message, whatever its __str__ does."""
    name = type(error).__name__
    try:
        message = str(error)
    except BaseException:
        message = "(no message)"
    return (name + ": " + message if message else name)[:MAX_ERROR_CHARS]


class Failed(Exception):
    """The script's assertion did not hold; the argument is the error."""


def run(source, program):
    """Runs source in a copy of the program's namespace: what it defines
    changes neither the program nor the next script. Returns "True"."""
    namespace = dict(program)
    before = set(namespace)
    try:
        exec(compile(source, "test.py", "exec", 0, True), namespace)
        for name in [n for n in namespace if n not in before or namespace[n] is not program[n]]:
            run_test(name, namespace[name])
    except AssertionError as error:
        raise Failed(error)
    return "True"


def run_test(name, value):
    unittest = sys.modules.get("unittest")  # there once the script has imported it
    if unittest and isinstance(value, type) and issubclass(value, unittest.TestCase):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(value).run(result)
        if result.failures:
            raise Failed(AssertionError(last_line(result.failures[0][1])))
        if result.errors:
            raise RuntimeError(last_line(result.errors[0][1]))
    elif name.startswith("test") and callable(value) and not isinstance(value, type):
        value()


def last_line(trace):
    return trace.strip().rpartition("\n")[2]
