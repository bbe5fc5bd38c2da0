"""Runs a test script apart from the program that it tests.

The script's process never holds the program, and the program's process never
holds the script. For the script the entry point is a proxy. It returns the known
outcomes of calls and records the calls whose outcome is unknown. The pool runs
those on the program, as it runs any call, and then runs the script again, until
it asks for no more calls.

A call with an unknown outcome returns an Unknown. An Unknown supports every
operation and compares as true, so that the script goes on to its other calls. The
first pass of a script does not depend on the program. So no program can influence
the decision whether the script is fit to run apart, which is made then.

A script that runs apart sees these differences from one inside the program: a
value is a copy, so `f(x) is x` does not hold, but a list, dict or set that the
program changed in place is changed here too; a value that no literal expresses is
an Opaque (codea1_objects), which equals nothing; an exception that is not a
built-in one is a RuntimeError.

A script that uses more of the program than its entry point, or that fails before
its first call, is unfit to run apart. A script that ends without a call tests
nothing and has not passed.
"""

import codea1_objects as objects
import codea1_scripts as scripts
import codea1_values as values
import builtins
import inspect
import json
import random
import re
import sys
import types
from codea1_arguments import CHANGES

MAX_CALLS = 1000
ENTRY = re.compile(r"(?:(?P<owner>[A-Za-z_]\w*)\(\)\.)?(?P<name>[A-Za-z_]\w*)")
LITERALS = {"__builtins__": {}, "set": set, "frozenset": frozenset, "float": float, "complex": complex}


class Unfit(BaseException):
    """The script needs more of the program than literals express."""


class Lost(BaseException):
    """A call hung or ended its process; the arguments are the kind and the reason."""


class Enough(BaseException):
    """The script asks for too many calls in one pass, or needs an unknown value."""


def run(item, entry, max_bytes):
    """Runs a script once. item is a JSON list of its source and the known outcomes
    of calls: {expression: [kind, text]}. Returns a JSON object with the calls that
    it asked for; if there are none, end and detail are its verdict."""
    source, known = json.loads(item)
    calls = Calls(known, max_bytes)
    end, detail = attempt(source, entry, calls)
    if calls.asked and end in ("fail", "raised"):
        # A set or a sum of unknown values is not an Unknown, so an assert on it
        # fails. Without the effect of asserts the script goes on to its other
        # calls; otherwise each pass would find one more call only.
        if attempt(source, entry, calls, asserts=False)[0] == "unfit" and not known:
            end = "unfit"
    return json.dumps({"asked": list(calls.asked), "end": end, "detail": detail})


def attempt(source, entry, calls, asserts=True):
    """Runs the script once. Returns its end and the reason. An error that ended a call also ends
    the script, even if the script catches every exception, as unittest does."""
    calls.stopped = calls.large = None
    end, detail = play(source, entry, calls, asserts)
    if type(calls.stopped) is Lost:
        return calls.stopped.args
    if calls.stopped is not None:
        return "unfit", str(calls.stopped)
    if calls.large is not None and end in ("fail", "raised"):
        return "not_run", "a call returned " + calls.large
    return end, detail


def play(source, entry, calls, asserts):
    random.seed(0)  # every pass makes the same choices
    known, before = calls.known, calls.made
    try:
        program = make_program(entry, calls)
        defined = scripts.run_in(source, dict(program), asserts)
        if calls.made == before:
            run_check(defined, entry, program)
        if calls.made == before:
            return "not_run", "the script makes no call of " + entry
        return "pass", ""
    except scripts.Failed as error:
        return "fail", scripts.describe(error.args[0])
    except Unfit as error:
        return "unfit", str(error)
    except Lost as error:
        return error.args
    except SyntaxError as error:
        return "raised", scripts.describe(error)
    except NameError as error:
        return "raised" if known else "unfit", scripts.describe(error)
    except BaseException as error:
        alone = calls.made == before and not known
        return "unfit" if alone else "raised", scripts.describe(error)


def run_check(defined, entry, program):
    """Calls check with the entry point if check has one parameter: some problem
    sets define check(candidate) and do not call it."""
    check = defined.get("check")
    if inspect.isfunction(check) and len(inspect.signature(check).parameters) == 1:
        try:
            check(eval(entry, program))
        except AssertionError as error:
            raise scripts.Failed(error)


def make_program(entry, calls):
    """Returns a namespace in place of the program's."""
    match = ENTRY.fullmatch(entry)
    if match is None:
        raise Unfit("the entry point is neither a function nor a method")
    owner, name = match["owner"], match["name"]
    proxy = lambda *arguments, **keywords: calls.call(entry, arguments, keywords)
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    module.__getattr__ = refused = lambda name: refuse(calls, name)
    if owner is None:
        setattr(module, name, proxy)
    else:
        setattr(module, owner, type(owner, (), {name: staticmethod(proxy), "__init__": lambda _, *a, **k: start(calls, a, k), "__getattr__": lambda _, n: refused(n)}))
    return module.__dict__


HOOKS = ("setUpModule", "tearDownModule", "load_tests")  # unittest looks for these names


def refuse(calls, name):
    if name.startswith("__") or name in HOOKS:
        raise AttributeError(name)
    raise calls.stop(Unfit("the script uses " + name + " of the program"))


def start(calls, arguments, keywords):
    if arguments or keywords:
        raise calls.stop(Unfit("the script gives the class arguments"))


class Calls:
    """The known outcomes of the program's calls, and the calls to ask for."""

    def __init__(self, known, max_bytes):
        self.known, self.asked, self.max_bytes = known, {}, max_bytes
        self.made = 0  # calls of the entry point
        self.stopped = None  # the first exception that the script must not survive
        self.large = None  # the description of a value that was too large

    def stop(self, error):
        self.stopped = self.stopped or error
        return error

    enough = staticmethod(lambda reason: Enough(reason))

    def call(self, entry, arguments, keywords):
        self.made += 1
        arguments = tuple(map(objects.plain, arguments))
        keywords = {name: objects.plain(v) for name, v in keywords.items()}
        try:
            text = self.write(arguments, keywords)
        except values.Uncomparable as error:
            # Without known outcomes, the script itself is the reason.
            reason = "an argument is " + str(error)
            raise TypeError(reason) if self.known else self.stop(Unfit(reason))
        if not any(type(v) in (list, dict, set) or type(v) is tuple for v in (*arguments, *keywords.values())):
            return self.look_up(entry + "(" + text + ")")
        found = self.look_up(CHANGES % entry + "(" + text + ")")
        if type(found) is objects.Opaque:  # asks for the value only; changes of the arguments are lost
            return self.look_up(entry + "(" + text + ")")
        if type(found) is Unknown:
            return found
        result, after, after_keywords = found
        for old, new in zip(arguments, after):
            update(old, new)
        for key, old in keywords.items():
            update(old, after_keywords.get(key))
        return result

    def write(self, arguments, keywords):
        arguments = tuple(map(objects.plain, arguments))
        keywords = {name: objects.plain(v) for name, v in keywords.items()}
        if contains_unknown(arguments) or contains_unknown(tuple(keywords.values())):
            raise Enough("an argument is not known yet")
        parts = [values.encode(a, self.max_bytes) for a in arguments]
        parts += [name + "=" + values.encode(v, self.max_bytes) for name, v in keywords.items()]
        return ", ".join(parts)

    def look_up(self, expression):
        if expression not in self.known:
            self.asked[expression] = None
            if len(self.asked) >= MAX_CALLS:
                raise Enough("too many calls")
            return Unknown()
        kind, text = self.known[expression]
        if kind == "value":
            return eval(text, dict(LITERALS))
        if kind == "large":
            self.large = text
        if kind in ("opaque", "large"):
            return objects.Opaque(self, expression, text)
        if kind == "raised":
            name, _, message = text.partition(": ")
            error = getattr(builtins, name, None)
            if isinstance(error, type) and issubclass(error, Exception):
                raise make_error(error, message)
            raise RuntimeError(text)
        raise self.stop(Lost(kind, text))


def make_error(error, message):
    try:
        return error(message)
    except TypeError:  # some exceptions, such as UnicodeDecodeError, need more arguments
        return RuntimeError(error.__name__ + ": " + message)


def contains_unknown(value):
    if type(value) is Unknown:
        return True
    if type(value) in (list, tuple, set, frozenset):
        return any(contains_unknown(v) for v in value)
    if type(value) is dict:
        return any(contains_unknown(v) for pair in value.items() for v in pair)
    return False


def update(old, new):
    """Applies the program's changes of an argument's copy, new, to the argument."""
    if type(old) is not type(new):
        return
    if type(old) is list:
        if len(old) == len(new):
            for a, b in zip(old, new):
                update(a, b)
        if not same(old, new):
            old[:] = new
    elif type(old) is dict:
        for key in old.keys() & new.keys():
            update(old[key], new[key])
        if not same(old, new) or list(old) != list(new):
            old.clear()
            old.update(new)
    elif type(old) is set:
        if old != new:
            old.clear()
            old.update(new)
    elif type(old) is tuple:
        for a, b in zip(old, new):
            update(a, b)


def same(old, new):
    return old == new and repr(old) == repr(new)  # 1 == True, but they differ


class Unknown:
    """The value of a call that has not run: it compares as true with everything."""

    def agree(self, *others):
        return True

    def go_on(self, *others, **keywords):
        return self

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __contains__ = agree
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = go_on
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __and__ = __rand__ = go_on
    __or__ = __ror__ = __xor__ = __rxor__ = __neg__ = __pos__ = __abs__ = __invert__ = __round__ = go_on
    __getitem__ = __getattr__ = __call__ = go_on

    def __hash__(self):
        return 0

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __int__(self):
        return 0

    def __float__(self):
        return 0.0

    __index__ = __int__
