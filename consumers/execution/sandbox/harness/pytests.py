"""The part of pytest that the test scripts of problem sets use, as the module
`pytest` of a script. It behaves the same with every Python, with pytest installed
or not, and starts at once.

It has raises, approx, fail, skip, importorskip, param, fixture (plain and with
yield) and mark.parametrize, mark.skip and mark.skipif. Other marks change nothing.
The rest of pytest is missing.
"""

import inspect
import itertools
import math
import re
import types


class Skipped(Exception):
    pass


def skip(reason="", **_):
    raise Skipped(reason)


def fail(reason="", **_):
    raise AssertionError(reason)


def importorskip(name, *_, **__):
    try:
        return __import__(name)
    except ImportError as error:
        raise Skipped(str(error))


def raises(expected, *call, match=None, **keywords):
    context = Raises(expected, match)
    if not call:
        return context
    with context:
        call[0](*call[1:], **keywords)
    return context


class Raises:
    def __init__(self, expected, match):
        self.expected, self.match, self.value = expected, match, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if kind is None:
            raise AssertionError("did not raise %r" % (self.expected,))
        if not issubclass(kind, self.expected):
            return False
        self.type, self.value = kind, error
        if self.match is not None and not re.search(self.match, str(error)):
            raise AssertionError("the exception is %r, which does not match %r" % (str(error), self.match))
        return True


def approx(expected, rel=None, abs=None, nan_ok=False):
    return Approx(expected, rel, abs, nan_ok)


class Approx:
    """Within 1e-6 of the expected number, or 1e-12, whichever is wider; a list,
    tuple or dict element by element."""

    __hash__ = None

    def __init__(self, expected, rel, abs, nan_ok):
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

    def __eq__(self, actual):
        return self.near(self.expected, actual)

    def near(self, expected, actual):
        if isinstance(expected, dict):
            return isinstance(actual, dict) and expected.keys() == actual.keys() and all(self.near(v, actual[k]) for k, v in expected.items())
        if isinstance(expected, (list, tuple)):
            return isinstance(actual, (list, tuple)) and len(expected) == len(actual) and all(map(self.near, expected, actual))
        if not isinstance(expected, (int, float, complex)) or not isinstance(actual, (int, float, complex)) or expected == actual:
            return expected == actual
        if actual != actual or expected != expected:
            return self.nan_ok and actual != actual and expected != expected
        if math.isinf(abs(expected)) or math.isinf(abs(actual)):
            return False
        relative = 0.0 if self.rel is None and self.abs is not None else 1e-6 if self.rel is None else self.rel
        return abs(actual - expected) <= max(relative * abs(expected), 1e-12 if self.abs is None else self.abs)

    def __repr__(self):
        return "approx(%r)" % (self.expected,)


def param(*values, **_):
    return Param(values)


class Param(tuple):
    pass


class Marks:
    def __getattr__(self, name):
        return lambda *arguments, **_: arguments[0] if arguments and callable(arguments[0]) else lambda test: test

    def parametrize(self, names, cases, **_):
        names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
        rows = []
        for case in cases:
            row = tuple(case) if type(case) is Param or len(names) > 1 else (case,)
            if len(row) != len(names):
                raise TypeError("parametrize: %d names, %d values" % (len(names), len(row)))
            rows.append(dict(zip(names, row)))
        return note("cases", lambda before: before + [rows], [])

    def skip(self, test=None, **_):
        mark = note("skipped", lambda _: True, False)
        return mark(test) if callable(test) else mark

    def skipif(self, condition, *_, **__):
        return note("skipped", lambda before: before or bool(condition), False)


mark = Marks()


def note(name, change, default):
    def decorate(test):
        setattr(test, "codea1_" + name, change(getattr(test, "codea1_" + name, default)))
        return test

    return decorate


def fixture(function=None, *, params=None, name=None, **_):
    def decorate(maker):
        maker.codea1_fixture = (name or maker.__name__, params)
        return maker

    return decorate(function) if function else decorate


def run(test, fixtures, owner=None):
    """Runs a test function once per case, with fixtures: {name: maker}. owner is the
    class of a test method."""
    if getattr(test, "codea1_skipped", False):
        return
    for rows in itertools.product(*getattr(test, "codea1_cases", [])):
        case = {name: value for row in rows for name, value in row.items()}
        instance = owner() if owner else None
        call = test if instance is None else types.MethodType(test, instance)
        hook(instance, "setup_method", test)
        try:
            run_case(call, case, fixtures, instance)
        except Skipped:
            pass
        finally:
            hook(instance, "teardown_method", test)


def hook(instance, name, test):
    method = getattr(instance, name, None)
    if method is not None:
        method(*[test] * len(needed(method)))


def run_case(call, case, fixtures, instance):
    made, open_generators = dict(case), []

    def make(name):
        if name not in made:
            if name not in fixtures:
                raise TypeError("there is no fixture " + name)
            maker = fixtures[name]
            if instance is not None and hasattr(type(instance), maker.__name__):
                maker = types.MethodType(maker, instance)
            params = maker.codea1_fixture[1]
            arguments = {n: make(n) for n in needed(maker) if n != "request"}
            if "request" in needed(maker):
                arguments["request"] = types.SimpleNamespace(param=params[0] if params else None)
            value = maker(**arguments)
            if inspect.isgenerator(value):
                open_generators.append(value)
                value = next(value)
            made[name] = value
        return made[name]

    try:
        call(**{name: make(name) for name in needed(call)})
    finally:
        for generator in reversed(open_generators):
            next(generator, None)


def needed(function):
    """Returns the names of the parameters that have no default."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind in kinds and p.default is p.empty]
