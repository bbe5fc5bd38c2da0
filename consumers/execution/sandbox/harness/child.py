"""The code of a child: it reads one job from its socket and answers each item.

A job is a little-endian uint32 length, then fields: each a little-endian
uint32 length and UTF-8 text. The fields are kind, "1" if the text of suites is
trusted or calls want digests and else "", the most bytes of a value, code, entry point, then the items. (With JSON a
tenth of a child's time would be page faults.) If the top bit of an item's length
is set, the item is a call of the entry point by value: the marshal data of a tuple
of its arguments, a tuple and a dict, and of True if it also returns them. A frame is a tag, a little-endian uint32 length
and UTF-8 text:

    B  begun: the job is read and its time starts
    L  the program loads
    U  it does not; the text says why. Last frame.
    V  the item's value, as literal text (a JSON list for parsed text)
    X  the item has a value that no literal expresses; the text says which, with a
       digest of a value over the size limit if the job wants digests
    R  the item raised; the text is the exception
    A  the item's own assertion failed (scripts only)

Each item has one frame, in order: a missing frame tells the pool which item hung
or crashed. The child never holds an expectation, except inside a test script
that must run in the program's process.
"""

import codea1_programs as programs
import codea1_proxies as proxies
import codea1_scripts as scripts
import codea1_suites as suites
import codea1_truths as truths
import codea1_values as values
import os
import random
import socket
import sys
from codea1_arguments import CHANGES, compute, make, names, split, vary
from hashlib import sha256
from json import dumps
from marshal import dumps as marshal, loads
from os import O_RDWR, O_WRONLY, _exit, close, closerange, devnull, dup2, read, write
from os import open as open_file
from struct import Struct
from sys import modules
from types import ModuleType

# Functions are imported by name: access by way of a module changes the module's
# memory, too, and a child copies every page that it changes.

# Whether the sets of an expression have another order, in each of its evaluations.
# Objects may get their addresses in one order in every second evaluation.
OTHER_ORDERS = (False, False, True, True, False, True, True, False)
STANDARD = 0, 1, 2
JOB_SOCKET = 3
READ_BYTES = 1 << 16  # at a time: most jobs in one piece
MAX_DESCRIPTORS = os.sysconf("SC_OPEN_MAX")
DEPTH = 1000  # of a program's calls: Python's usual limit
BY_VALUE = 1 << 31  # in an item's length
DIGESTED = 2  # version of marshal without references: they depend on more than the value
length, header = Struct("<I"), Struct("<cI").pack
read_length = length.unpack_from
REHEARSALS = 20  # Python specialises code that runs more than eight times
REHEARSED = """
import math, re
from typing import *
from collections import *

class Solution:
    def f(self, values: List[int]) -> Dict[str, float]:
        return {str(v): v / 2 for v in sorted(values)}

def f(x, y=0):
    total = [x + i for i in range(3)]
    return (total, {"a": 1.5, "b": {x}}, "%s" % y, None, True)
"""
REHEARSED_SUITE = "assert f([1, 'a'], k=-2.5) == {'a': (1, None)}\nassert f(len('a')) == 2\nx = 1\nassert f(x) > 1\n"


job_socket = JOB_SOCKET  # another one in a rehearsal
prepared = False  # whether prepare has run in the fork server
varied = False  # whether children differ in addresses, hash seed and time
arguments, named_arguments = [], {}  # of the running call by value
processes = None  # a descriptor of /proc if children share the fork server's memory limit


def main(descriptor, confine):
    """Runs the job that comes over descriptor. Never returns."""
    try:
        if processes is not None:
            end_first()
        confine()
        # Opened anew: flags and owners belong to the open file, and a candidate
        # could set them for the next one.
        null = open_file(devnull, O_RDWR)
        for standard in STANDARD:
            dup2(null, standard)
        dup2(descriptor, JOB_SOCKET)
        closerange(JOB_SOCKET + 1, MAX_DESCRIPTORS)
        run(*read_job())
        close(JOB_SOCKET)  # the pool does not wait until the memory is freed
        _exit(0)  # no atexit, no waiting for threads
    except BaseException:
        sys.excepthook(*sys.exc_info())  # shows an error of the harness before confine
    finally:
        _exit(1)


def end_first():
    """Makes the kernel end the candidate or one of its processes, never the fork
    server, when they are over their memory limit."""
    try:
        score = open_file("self/oom_score_adj", O_WRONLY, dir_fd=processes)
        write(score, b"1000")
        close(score)
    except OSError:
        pass


def read_job():
    """Returns kind, flag, max_value_bytes, code, entry and items."""
    data = read_some(READ_BYTES)
    while len(data) < 4:
        data += read_some(READ_BYTES)
    at, end = 4, 4 + read_length(data)[0]
    if len(data) < end:
        data = bytearray(data)
        while len(data) < end:
            data += read_some(end - len(data))
    fields = []
    while at < end:
        start, size = at + 4, read_length(data, at)[0]
        if size < BY_VALUE:
            at = start + size
            fields.append(data[start:at].decode("utf-8", "replace"))
        else:
            at = start + size - BY_VALUE
            fields.append(data[start:at])
    kind, flag, max_value_bytes, code, entry = fields[:5]
    return kind, flag == "1", int(max_value_bytes), code, entry, fields[5:]


def read_some(size):
    data = read(job_socket, size if size < 1 << 20 else 1 << 20)
    if not data:
        _exit(0)
    return data


def send(tag, text="", write=write, header=header):
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = text.encode("utf-8", "backslashreplace")
    data = header(tag, len(data)) + data
    while data:
        data = data[write(job_socket, data):]


def prepare(frames):
    """Prepares this process for a program that runs a number of frames below the
    caller: the program gets Python's usual recursion depth and the same random
    numbers in every child."""
    global prepared
    frame = sys._getframe(1)
    while frame:
        frames, frame = frames + 1, frame.f_back
    sys.setrecursionlimit(DEPTH + frames)
    random.seed(1 if varied else 0)
    prepared = True


def run(kind, flag, max_value_bytes, code, entry, items):
    if not prepared:
        prepare(1)
    send(b"B")
    RUN[kind](flag, max_value_bytes, code, entry, items)


def run_calls(digests, max_value_bytes, code, entry, items):
    namespace = load(code, entry)
    if namespace is not None:
        compiled = {}
        for call in items:
            if call == "":
                answer(truths.describe, code, entry, namespace, max_value_bytes)
                continue
            answer(evaluate, call, entry, compiled, namespace, max_value_bytes, digests)


def run_scripts(_, max_value_bytes, code, entry, items):
    namespace = load(code, entry)
    if namespace is not None:
        for script in items:
            answer(scripts.run, script, namespace)


def run_programs(_, max_value_bytes, code, entry, items):
    send(b"L")
    for program in items:
        answer(programs.run, program, max_value_bytes)


def run_proxies(_, max_value_bytes, code, entry, items):
    send(b"L")
    for script in items:
        answer(proxies.run, script, entry, max_value_bytes)


def run_suites(trusted, max_value_bytes, code, entry, items):
    send(b"L")
    for suite in items:
        answer(parse, suite, entry, trusted, max_value_bytes)


# A table, because comparing names one by one changes their memory.
RUN = {"calls": run_calls, "scripts": run_scripts, "programs": run_programs, "proxies": run_proxies, "suites": run_suites}


def compile_call(function):
    """Returns code that calls the function with copies of the values in arguments
    and named_arguments. A program cannot tell it from the code of a call's text."""
    code = compile(function + "(*'a', **'b')", "<test>", "eval", 0, True)
    given = {"a": arguments, "b": named_arguments}
    return code.replace(co_consts=tuple([given.get(constant, constant) for constant in code.co_consts]))


def evaluate(call, entry, compiled, namespace, max_value_bytes, digests):
    function, text = entry, None
    if type(call) is not str:
        given = loads(call)
        arguments[:], named = given[:2]
        if len(given) > 2:
            function = CHANGES % entry
    elif entry == "":
        value = compute(call, namespace)[0] if not varied else [compute(call, namespace, other)[0] for other in OTHER_ORDERS]
        return values.encode(value, max_value_bytes)
    else:
        parts = split(call, entry)
        if parts is None:
            return values.encode(compute(call, names(namespace, entry))[0], max_value_bytes)
        function, text = parts
        arguments[:], named, _ = make(text, namespace)
    named_arguments.clear()
    named_arguments.update(named)
    code = compiled.get(function)
    if code is None:
        code = compiled[function] = compile_call(function)
    value = eval(code, namespace)
    if varied and text is not None:
        return values.encode(same_again(value, code, text, namespace), max_value_bytes)
    return encode(value, max_value_bytes, digests)


def encode(value, max_value_bytes, digests):
    """Returns the text of a value. Of a value over the size limit, only its digest is
    sent, if it is wanted. Values with equal digests are equal, with equal types, except
    that bytes may be any object with a buffer. Values with different ones may be equal."""
    try:
        return values.encode(value, max_value_bytes)
    except values.Uncomparable as error:
        if not digests or error.args[0] not in (values.TOO_LARGE, values.MANY_BITS):
            raise
        try:
            data = marshal(value, DIGESTED)
        except ValueError:  # an instance of a subclass, for example
            raise error
        raise values.Uncomparable(values.TOO_LARGE + ", SHA-256 " + sha256(data).hexdigest())


def same_again(value, code, text, namespace):
    """Calls once more with the sets among the arguments in another order."""
    arguments[:], named, moved = make(text, namespace, True)
    named_arguments.clear()
    named_arguments.update(named)
    if moved and eval(code, namespace) != value:
        raise values.Uncomparable("a value that depends on the order of a set")
    return value


def parse(suite, entry, trusted, max_value_bytes):
    return dumps(suites.parse(suite, entry, trusted, max_value_bytes))


def load(code, entry):
    """Returns the program's namespace, or None if it does not load."""
    module = ModuleType("solution")
    modules["solution"] = module
    namespace = module.__dict__
    try:
        exec(compile(code, "solution.py", "exec", 0, True), namespace)
        if entry and not callable(eval(compile(entry, "<entry point>", "eval", 0, True), namespace)):
            raise TypeError(entry + " is not callable")
    except BaseException as error:
        send(b"U", scripts.describe(error))
        return None
    send(b"L")
    return namespace


def rehearse():
    """Runs a harmless job in the fork server. Python creates some objects at their
    first use (caches, specialised bytecode). They now exist before the fork;
    otherwise every child creates them and copies the pages that hold them."""
    global job_socket, prepared
    ours, theirs = socket.socketpair()
    job_socket = theirs.fileno()
    prepared = True
    renew(modules)
    for _ in range(REHEARSALS):
        fields = [field.encode() for field in ("calls", "", "1000", REHEARSED, "f", "f('a')", "f(None)", "Solution().f([])")]
        job = b"".join(length.pack(len(field)) + field for field in fields)
        for call in (((1,), {}), (([1, "a"],), {"y": -2.5})):
            data = marshal(call)
            job += length.pack(BY_VALUE + len(data)) + data
        ours.sendall(length.pack(len(job)) + job)
        run(*read_job())
        parse(REHEARSED_SUITE, "f", False, 1000)
        ours.recv(1 << 16)
    del modules["solution"]
    ours.close()
    theirs.close()
    job_socket = JOB_SOCKET


def renew(table):
    """Moves a dict to newly allocated memory, by making it grow."""
    more = {str(number): None for number in range(2 * len(table))}
    table.update(more)
    for key in more:
        del table[key]


def answer(compute, *arguments):
    """Sends the frame of an item."""
    try:
        text = compute(*arguments)
    except values.Uncomparable as error:
        send(b"X", str(error))
    except scripts.Failed as error:
        send(b"A", scripts.describe(error.args[0]))
    except BaseException as error:
        send(b"R", scripts.describe(error))
    else:
        send(b"V", text)
