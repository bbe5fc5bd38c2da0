"""Writes a Python value as literal text.

It uses the methods of the literal types themselves and never calls a method of a
candidate's class: an instance of a subclass (Counter, a namedtuple, an IntEnum, a
list with its own __eq__) counts as a value of its base type.
"""

MAX_DEPTH = 60
MAX_INT_BITS = 1 << 16
DECIMAL_BITS = 14_000  # Python 3.11 and later write at most 4,300 digits

_INT = int.__repr__
_FORMAT_INT = int.__format__
_BITS = int.bit_length
_FLOAT = float.__repr__
_REAL = complex.real.__get__
_IMAGINARY = complex.imag.__get__
_STR = str.__repr__
_STR_LEN = str.__len__
_BYTES = bytes.__repr__
_BYTES_LEN = bytes.__len__


TOO_LARGE = "a value over the size limit"
MANY_BITS = "an int of over %d bits" % MAX_INT_BITS


class Uncomparable(Exception):
    """The value has no literal text; the argument says why."""


def encode(value, max_bytes):
    """Returns value as literal text of at most max_bytes characters."""
    parts = []
    _write(value, parts.append, [max_bytes], MAX_DEPTH)
    return "".join(parts)


def _spend(budget, size):
    budget[0] -= size
    if budget[0] < 0:
        raise Uncomparable(TOO_LARGE)


def _write(value, out, budget, depth):
    kind = type(value)
    if value is None or value is True or value is False:
        text = "None" if value is None else "True" if value else "False"
    elif issubclass(kind, int):
        if _BITS(value) > MAX_INT_BITS:
            raise Uncomparable(MANY_BITS)
        text = _INT(value) if _BITS(value) <= DECIMAL_BITS else _FORMAT_INT(value, "#x")
    elif issubclass(kind, str):
        _spend(budget, _STR_LEN(value))  # checks the size before repr makes a copy
        text = _STR(value)
    elif issubclass(kind, float):
        text = _FLOAT(value)
    elif issubclass(kind, complex):
        text = "complex(" + _FLOAT(_REAL(value)) + ", " + _FLOAT(_IMAGINARY(value)) + ")"
    elif issubclass(kind, bytes):
        _spend(budget, _BYTES_LEN(value))
        text = _BYTES(value)
    else:
        if depth == 0:
            raise Uncomparable("a value nested too deep")
        _write_container(value, kind, out, budget, depth - 1)
        return
    _spend(budget, len(text))
    out(text)


def _write_container(value, kind, out, budget, depth):
    if issubclass(kind, list):
        if 3 * list.__len__(value) > budget[0]:
            raise Uncomparable(TOO_LARGE)  # without writing a part
        _write_items("[", list.__iter__(value), "]", out, budget, depth)
    elif issubclass(kind, tuple):
        single = tuple.__len__(value) == 1
        _write_items("(", tuple.__iter__(value), ",)" if single else ")", out, budget, depth)
    elif issubclass(kind, dict):
        out("{")
        for key, item in dict.items(value):
            _write(key, out, budget, depth)
            out(": ")
            _write(item, out, budget, depth)
            out(", ")
            _spend(budget, 4)
        out("}")
    elif issubclass(kind, set):
        if set.__len__(value):
            _write_items("{", set.__iter__(value), "}", out, budget, depth)
        else:
            out("set()")
    elif issubclass(kind, frozenset):
        if frozenset.__len__(value):
            _write_items("frozenset({", frozenset.__iter__(value), "})", out, budget, depth)
        else:
            out("frozenset()")
    else:
        raise Uncomparable("a value of type " + str(type.__dict__["__name__"].__get__(kind))[:60])
    _spend(budget, 13)


def _write_items(opening, items, closing, out, budget, depth):
    out(opening)
    separate = False
    for item in items:
        if separate:
            out(", ")
        separate = True
        _write(item, out, budget, depth)
        _spend(budget, 2)
    out(closing)
