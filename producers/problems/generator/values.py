"""The values that built-in problems take and return, and their text."""


def literal(value):
    """The value as a Python literal without spaces, for example [3,-1,'ab']."""
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(literal, value)) + "]"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if value is None or isinstance(value, int):
        return str(value)
    raise TypeError("no literal for a " + type(value).__name__)


def key(value):
    """A text that two values share exactly when == holds between them."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(key, value)) + "]"
    return literal(value)


def function(source):
    """The function solve that the source defines."""
    scope = {}
    exec(source, scope)
    return scope["solve"]


def outcome(function, arguments):
    """The key of the value that the function returns; None if it raises."""
    try:
        return key(function(*arguments))
    except Exception:  # a program with a mistake may raise anything
        return None


def assertion(arguments, value):
    """A test that a call of solve has the value."""
    return "assert solve(" + ",".join(map(literal, arguments)) + ") == " + literal(value)
