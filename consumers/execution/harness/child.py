"""What runs in a child: reads one job from its socket, answers item by item.

A job is a little-endian uint32 length, then fields: each a little-endian
uint32 length and UTF-8 text. The fields are kind, "1" if the text is trusted
or "", the most bytes of a value, code, entry point, then the items. (JSON would
cost every child a tenth of its life in page faults.) An answer frame is a tag,
a little-endian uint32 length and UTF-8 text:

    B  begun: the job is read and its clock starts
    L  the program loads
    U  it does not; the text says why. Last frame.
    V  the item's value, as literal text (a JSON list for parsed text)
    X  the item has a value that no literal can express; the text says which
    R  the item raised; the text is the exception
    A  the item's own assertion failed (scripts only)

One item, one frame, in order: a frame that is missing tells the pool which
item hung or crashed. The child never holds an expectation, except inside a
test script that cannot be taken apart.
"""

import codea1_programs as programs
import codea1_proxies as proxies
import codea1_scripts as scripts
import codea1_suites as suites
import codea1_values as values
import json
import os
import random
import socket
import struct
import sys
import types

JOB_SOCKET = 3
MAX_DESCRIPTORS = os.sysconf("SC_OPEN_MAX")
REHEARSALS = 20  # Python specialises what runs more often than eight times
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
seeded = False  # the fork server has seen to it
processes = None  # a descriptor of /proc, where children share the fork server's memory limit


def main(descriptor, keeper):
    """Runs the job that comes over descriptor. Never returns."""
    try:
        confine(descriptor, keeper)
        run(*read_job())
        os._exit(0)  # no atexit, no waiting for threads
    except BaseException:
        sys.excepthook(*sys.exc_info())  # of the harness; nobody reads it once confined
    finally:
        os._exit(1)


def confine(descriptor, keeper):
    if processes is not None:
        end_first()
    keeper.confine()
    os.dup2(descriptor, JOB_SOCKET)
    os.closerange(JOB_SOCKET + 1, MAX_DESCRIPTORS)
    os.dup2(0, 2)


def end_first():
    """When a candidate and what it starts are over their limit, the kernel ends
    one of them, never the fork server."""
    try:
        score = os.open("self/oom_score_adj", os.O_WRONLY, dir_fd=processes)
        os.write(score, b"1000")
        os.close(score)
    except OSError:
        pass


def read_job():
    """Returns kind, trusted, max_value_bytes, code, entry and items."""
    data = read_exactly(struct.unpack("<I", read_exactly(4))[0])
    fields, at = [], 0
    while at < len(data):
        start = at + 4
        at = start + struct.unpack_from("<I", data, at)[0]
        fields.append(data[start:at].decode("utf-8", "replace"))
    kind, trusted, max_value_bytes, code, entry = fields[:5]
    return kind, trusted == "1", int(max_value_bytes), code, entry, fields[5:]


def read_exactly(size):
    data = bytearray()
    while len(data) < size:
        chunk = os.read(job_socket, min(size - len(data), 1 << 20))
        if not chunk:
            os._exit(0)
        data += chunk
    return bytes(data)


def send(tag, text="", write=os.write, pack=struct.pack):
    data = text.encode("utf-8", "backslashreplace")
    data = tag + pack("<I", len(data)) + data
    while data:
        data = data[write(job_socket, data):]


def run(kind, trusted, max_value_bytes, code, entry, items):
    # A program gets Python's usual recursion depth, not what the harness left.
    depth, frame = 0, sys._getframe()
    while frame:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(1000 + depth)
    if not seeded:
        random.seed(0)  # the same program gives the same answers in every child
    send(b"B")
    if kind == "suites":
        send(b"L")
        for text in items:
            answer(lambda: json.dumps(suites.parse(text, entry, trusted, max_value_bytes)))
        return
    if kind == "programs":
        send(b"L")
        for item in items:
            answer(lambda: programs.run(item, max_value_bytes))
        return
    if kind == "proxies":
        send(b"L")
        for item in items:
            answer(lambda: proxies.run(item, entry, max_value_bytes))
        return
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    namespace = module.__dict__
    if not load(code, entry, namespace):
        return
    for item in items:
        if kind == "scripts":
            answer(lambda: scripts.run(item, namespace))
        else:
            answer(lambda: values.encode(eval(compile(item, "<test>", "eval", 0, True), namespace), max_value_bytes))


def load(code, entry, namespace):
    try:
        exec(compile(code, "solution.py", "exec", 0, True), namespace)
        if entry and not callable(eval(compile(entry, "<entry point>", "eval", 0, True), namespace)):
            raise TypeError(entry + " is not callable")
    except BaseException as error:
        send(b"U", scripts.describe(error))
        return False
    send(b"L")
    return True


def rehearse():
    """Goes through a harmless job in the zygote. What Python makes when it is
    first needed (caches, specialised bytecode) is then there for every child,
    which would otherwise copy the pages that it is made on."""
    global job_socket, seeded
    ours, theirs = socket.socketpair()
    job_socket = theirs.fileno()
    limit = sys.getrecursionlimit()
    for _ in range(REHEARSALS):
        fields = [field.encode() for field in ("calls", "", "1000", REHEARSED, "f", "f(1)", "f('a')", "f(None)", "Solution().f([])")]
        job = b"".join(struct.pack("<I", len(field)) + field for field in fields)
        ours.sendall(struct.pack("<I", len(job)) + job)
        run(*read_job())
        json.dumps(suites.parse(REHEARSED_SUITE, "f", False, 1000))
        ours.recv(1 << 16)
    sys.setrecursionlimit(limit)
    del sys.modules["solution"]
    ours.close()
    theirs.close()
    job_socket = JOB_SOCKET
    random.seed(0)
    seeded = True


def answer(compute):
    """Sends the one frame of an item."""
    try:
        text = compute()
    except values.Uncomparable as error:
        send(b"X", str(error))
    except scripts.Failed as error:
        send(b"A", scripts.describe(error.args[0]))
    except BaseException as error:
        send(b"R", scripts.describe(error))
    else:
        send(b"V", text)
