"""An object of the program, as a test script apart from the program sees it.

No literal expresses the object, so it stays in the program's process. Each use in
the script becomes an expression. The expression makes the object again, repeats
all earlier uses, and then does the next one. The script gets the value of that
use if a literal expresses it. Otherwise the script gets one more such object. It
is a copy: changes of it do not reach the object that it came from.

The object equals nothing, because the program itself would decide what it equals.
For the same reason it contains only the items that it yields.
"""

import builtins
import operator

MAX_STEPS = 200


class Opaque:
    __slots__ = ("_calls", "_origin", "_what", "_steps")

    def __init__(self, calls, origin, what):
        set_slot = object.__setattr__
        set_slot(self, "_calls", calls)
        set_slot(self, "_origin", origin)
        set_slot(self, "_what", what)
        set_slot(self, "_steps", [])

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Member(self, name)

    def __setattr__(self, name, value):
        step(self, "_o.%s = %s" % (name, write(self, value)), "None")

    def __setitem__(self, key, value):
        step(self, "_o[%s] = %s" % (write(self, key), write(self, value)), "None")

    def __delitem__(self, key):
        step(self, "del _o[%s]" % write(self, key), "None")

    def __getitem__(self, key):
        return step(self, "_r = _o[%s]" % write(self, key))

    def __call__(self, *arguments, **keywords):
        return step(self, "_r = _o(%s)" % self._calls.write(arguments, keywords))

    def __contains__(self, value):
        # The program must not decide this, either.
        return value in list(iter(self))

    def __iter__(self):
        items = step(self, "_r = list(_o)")
        if type(items) is not Opaque:
            return iter(items)
        return iter([step(items, "_r = _o[%d]" % place) for place in range(step(items, "_r = len(_o)"))])

    def __next__(self):
        return step(self, "_r = next(_o)")

    def __len__(self):
        return step(self, "_r = len(_o)")

    def __bool__(self):
        return bool(step(self, "_r = bool(_o)"))

    def __str__(self):
        return str(step(self, "_r = str(_o)"))

    def __repr__(self):
        return "<" + self._what + ">"

    def __eq__(self, other):
        return False

    __hash__ = object.__hash__


def write(target, value):
    return target._calls.write((value,), {})


def step(target, statement, result=None):
    """Adds one use of the object and returns its value."""
    lines = ["_o = " + target._origin]
    for before in target._steps:
        lines += ["try: " + before, "except Exception: pass"]
    lines += [statement] if result is None else [statement, "_r = " + result]
    if len(target._steps) >= MAX_STEPS:
        raise target._calls.enough("the script uses one object too often")
    target._steps.append(statement)
    return target._calls.look_up("(lambda _d: (exec(%r, _d), _d['_r'])[1])(dict(globals()))" % "\n".join(lines))


class Member:
    """An attribute of such an object. A call of it is a call of a method. Any other
    use asks for its value."""

    __slots__ = ("_owner", "_name", "_known")

    def __init__(self, owner, name):
        self._owner, self._name, self._known = owner, name, []

    def __call__(self, *arguments, **keywords):
        return step(self._owner, "_r = _o.%s(%s)" % (self._name, self._owner._calls.write(arguments, keywords)))

    def value(self):
        if not self._known:
            self._known.append(step(self._owner, "_r = _o." + self._name))
        return self._known[0]

    def __getattr__(self, name):
        return getattr(self.value(), name)

    def __hash__(self):
        return hash(self.value())


def plain(value):
    """Returns the value of a Member, and any other value as it is."""
    return value.value() if type(value) is Member else value


def forward(name):
    """Returns a special method that calls the value's own method."""
    call = getattr(operator, name, None) or getattr(builtins, name, None)
    return lambda self, *others: call(self.value(), *map(plain, others))


def reflect(name):
    call = getattr(operator, name)
    return lambda self, other: call(other, self.value())


for special in "eq ne lt le gt ge add sub mul truediv floordiv mod pow and_ or_ xor neg pos abs invert getitem contains".split():
    setattr(Member, "__%s__" % special.strip("_"), forward(special))
for special in "iter len str repr bool int float round".split():
    setattr(Member, "__%s__" % special, forward(special))
for special in "add sub mul truediv floordiv mod".split():
    setattr(Member, "__r%s__" % special, reflect(special))
