"""The steps of a call of a program.

load(text, name) compiles a program, and trace(call) runs a call in a program of its own. It
returns the value and the steps: for each statement of the function called name that is
about to run, its line, and the text of the value and the type of each variable that has a
short literal. A line with several statements has None in place of the variables, because a
reader could count it several times. Only the first call of the function is followed; a
call within it, of itself too, is a part of a line. No method of a class of the program is
called. A call with more than MOST steps is ended.

The steps come from sys.monitoring, which Python 3.12 and later have, or from sys.settrace.
"""
import ast
import sys

MOST = 200  # steps
VARIABLES = 24  # of a step
ITEMS, DIGITS = 40, 30  # of a value, of a number
FILE = "program"

program, entry = None, ""
statements = {}  # by line: the number of them that begin there
steps, followed = [], None


class TooMany(BaseException):
    """The call has too many steps. A program that catches it has its whole time."""


def load(text, name):
    global program, entry
    program, entry = compile(text, FILE, "exec"), name
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.stmt, ast.ExceptHandler)):
            statements[node.lineno] = statements.get(node.lineno, 0) + 1
        elif type(node).__name__ == "match_case":
            statements[node.pattern.lineno] = statements.get(node.pattern.lineno, 0) + 1


def size(value, depth):
    """The number of items of a value; more than ITEMS for one without a short literal."""
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return 1
    if kind is int:
        return 1 if abs(value) < 10**DIGITS else ITEMS + 1
    if kind is str or kind is bytes:
        return 1 + len(value) // 4
    if depth == 0 or kind not in (list, tuple, dict, set, frozenset) or len(value) > ITEMS:
        return ITEMS + 1
    count = 1
    for item in value.items() if kind is dict else value:
        count += size(item, depth - 1)
        if count > ITEMS:
            break
    return count


def note(frame):
    if len(steps) > MOST:
        raise TooMany  # without it, a call that never ends takes all its time
    line = frame.f_lineno
    # An expression of several lines, or a loop of one line, gives the same line again.
    if line not in statements or steps and steps[-1][0] == line:
        return
    known = None
    if statements[line] == 1:
        known = {}
        for name, value in frame.f_locals.items():
            if len(known) < VARIABLES and name.isidentifier() and size(value, 6) <= ITEMS:
                known[name] = (repr(value), type(value).__name__)
    steps.append((line, known))


def is_entry(code):
    return code.co_filename == FILE and code.co_name == entry


def settrace(run):
    def line(frame, event, argument):
        if event == "line":
            note(frame)
        return line

    def enter(frame, event, argument):
        global followed
        if event == "call" and followed is None and is_entry(frame.f_code):
            followed = frame
            return line

    sys.settrace(enter)
    try:
        return run()
    finally:
        sys.settrace(None)


def monitor(run):
    monitoring, tool = sys.monitoring, sys.monitoring.DEBUGGER_ID
    events = monitoring.events

    def start(code, offset):
        global followed
        if followed is None and is_entry(code):
            followed = sys._getframe(1)
            monitoring.set_local_events(tool, code, events.LINE)

    def line(code, number):
        frame = sys._getframe(1)
        if frame is followed:
            note(frame)

    monitoring.use_tool_id(tool, "codea1")
    try:
        monitoring.register_callback(tool, events.PY_START, start)
        monitoring.register_callback(tool, events.LINE, line)
        monitoring.set_events(tool, events.PY_START)
        return run()
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)


def trace(call):
    global followed
    namespace = {"__name__": FILE}
    exec(program, namespace)
    steps.clear()
    followed = None
    value = (monitor if hasattr(sys, "monitoring") else settrace)(lambda: eval(call, namespace))
    return value, list(steps) if followed is not None and len(steps) <= MOST else None
