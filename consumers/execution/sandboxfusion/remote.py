"""Runs one job of the pool as a whole program on a server that only runs code and
returns standard output and files.

codea1_child runs in a child of this process, which does the pool's part: it ends a
child that hangs or dies, and a fresh child does the rest. main's argument is the
base64 of a JSON object; answer.go writes it.

The output is lines of a nonce, a blank and a JSON list of a tag, a text and the
seconds that an item or loading took, in ASCII. They go to standard output up to a limit, and the rest to a file that is
fetched. The nonce tells them from other output.

    B  begun
    L  the program loads
    U  it does not; the text says why
    V, X, R, A  an item's frame, as codea1_child has it
    O  no frame within the time limit (of loading, or of the item)
    M  no frame: the child ended, and the text says how
    E  the end. The text is "more" if the output got too long for the other items.

A program can write such lines too, or prevent them. It only chooses the values of
its calls, as every program does.
"""

import base64
import fcntl
import json
import os
import resource
import select
import signal
import struct
import sys
import time
import types

FRAMES = 3  # the descriptor that codea1_child writes to
HEADER = 5
START_SECONDS = 30.0
STACK_BYTES = 8 << 20
MOST_RELOADS = 3  # in a row, of a program that has loaded once
NOT_AGAIN = "the program does not load again after a call that ended its process"
ITEM_TAGS = ("V", "X", "R", "A", "O", "M")


def main(text):
    setup = json.loads(base64.b64decode(text))
    begin_again("1" if setup["varied"] else "0")
    load_modules(setup["modules"])
    answer = Answer(setup)
    try:
        run(setup, answer)
    finally:
        answer.close()


def begin_again(seed):
    """Starts this program again, so that sets have the same order in every process
    and programs are repeatable; varied jobs have another one. It also lowers the limit of the stack: a thread's
    stack has the size of the limit at the start of a program, and a server may have
    set that to all the memory."""
    if os.environ.get("PYTHONHASHSEED") == seed:
        return
    environment = dict(os.environ, PYTHONHASHSEED=seed, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    set_limit(resource.RLIMIT_STACK, STACK_BYTES, soft_only=True)
    try:
        os.execve(sys.executable, [sys.executable, "-B", os.path.abspath(__file__)], environment)
    except OSError:
        pass  # some sandboxes allow no second program


def load_modules(sources):
    for name, source in sources:
        module = types.ModuleType(name)
        sys.modules[name] = module
        exec(compile(source, name + ".py", "exec"), module.__dict__)


def set_limit(which, value, soft_only=False):
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    try:
        resource.setrlimit(which, (value, hard if soft_only else value))
    except (OSError, ValueError):
        pass  # not every machine knows every limit


class Answer:
    """The lines of the output, on standard output and in the file."""

    def __init__(self, setup):
        self.nonce, self.file_name = setup["nonce"], setup["file_name"]
        self.stdout_left, self.left = setup["stdout_bytes"], setup["most_bytes"]
        self.stdout, self.file = os.dup(1), None

    def say(self, tag, text="", seconds=0):
        line = (self.nonce + " " + json.dumps([tag, text, seconds]) + "\n").encode("ascii")
        self.left -= len(line)
        if self.file is None and len(line) > self.stdout_left:
            self.file = os.open(self.file_name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self.stdout_left -= len(line)
        target = self.stdout if self.file is None else self.file
        while line:
            line = line[os.write(target, line):]

    def close(self):
        os.close(self.stdout)
        if self.file is not None:
            os.close(self.file)


def run(setup, answer):
    items, done, loads, failed = setup["items"], 0, False, 0
    deadline = time.monotonic() + setup["budget"]

    def soon():
        return min(time.monotonic() + setup["each"], deadline)

    answer.say("B")
    while True:
        # The child does not wait for this process, so its first item, loading, begins
        # here, and each other item where the one before it ends. No time is lost.
        clock = Clock()
        child = Child(setup, items[done:])
        try:
            if child.frame(time.monotonic() + START_SECONDS)[0] != "B":
                raise SystemExit("the child ended before it began")
            tag, text = child.frame(soon())
            took = clock.lap()
            if not loads:
                answer.say(tag if tag in ("L", "U", "O") else "M", text, took)
                if tag != "L":
                    break
            loads = True
            failed = 0 if tag == "L" else failed + 1
            while not failed and done < len(items) and time.monotonic() < deadline:
                until = soon()
                tag, text = child.frame(until)
                took = clock.lap()
                if tag == "O" and until == deadline:
                    break  # the job ran out of time, not the item
                known = tag in ITEM_TAGS
                answer.say(tag if known else "M", text if known else "it sent a frame of an unknown kind", took)
                done += 1
                if answer.left <= 0 and done < len(items):
                    answer.say("E", "more")
                    return
                if tag in ("O", "M"):
                    break
        finally:
            child.end()
        over = time.monotonic() >= deadline
        if failed == MOST_RELOADS or over and failed > 1:
            while done < len(items):
                answer.say("R", NOT_AGAIN)
                done += 1
        if over or done == len(items):
            break
    answer.say("E")


class Clock:
    """Measures times that follow one another without a gap."""

    def __init__(self):
        self.began = time.monotonic()

    def lap(self):
        """Returns the seconds since the last call, or since the start."""
        now = time.monotonic()
        took, self.began = now - self.began, now
        return took


class Child:
    """A child process that does items."""

    def __init__(self, setup, items):
        self.most, self.buffer, self.status = setup["frame_bytes"], bytearray(), None
        self.reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                become_child(setup, items, writing)
            finally:
                os._exit(1)
        os.close(writing)

    def frame(self, deadline):
        """Returns a frame's tag and text, or the tag O or M if there is no frame."""
        while (size := self.size()) is None or len(self.buffer) < HEADER + size:
            if size is not None and size > self.most:
                return "M", self.end()
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.reading], [], [], left)[0]:
                return "O", ""
            chunk = os.read(self.reading, 1 << 16)
            if not chunk:
                return "M", self.end()
            self.buffer += chunk
        tag, text = chr(self.buffer[0]), bytes(self.buffer[HEADER : HEADER + size])
        del self.buffer[: HEADER + size]
        return tag, text.decode("utf-8", "replace")

    def size(self):
        """Returns the length of the next frame's text, or None if it has not come."""
        return struct.unpack_from("<I", self.buffer, 1)[0] if len(self.buffer) >= HEADER else None

    def end(self):
        """Ends the process and its group. Returns a description of its end."""
        if self.status is None:
            for kill in (os.killpg, os.kill):
                try:
                    kill(self.pid, signal.SIGKILL)
                except OSError:
                    pass  # it has ended or left its group
            self.status = os.waitpid(self.pid, 0)[1]
            os.close(self.reading)
        code = os.waitstatus_to_exitcode(self.status)
        if code == -signal.SIGKILL:
            return "the process left its test or was killed"
        return "the process died of signal %d" % -code if code < 0 else "the process exited with status %d" % code


def become_child(setup, items, writing):
    """Never returns."""
    os.setpgid(0, 0)
    writing = fcntl.fcntl(writing, fcntl.F_DUPFD, FRAMES + 1)  # out of the way
    devnull = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(devnull, standard)
    os.dup2(writing, FRAMES)
    os.closerange(FRAMES + 1, os.sysconf("SC_OPEN_MAX"))
    for name, value in setup["limits"].items():
        set_limit(getattr(resource, name), value)
    child = sys.modules["codea1_child"]
    if setup["varied"]:
        child.vary()
        child.varied = True
    child.run(setup["kind"], setup["trusted"], setup["value_bytes"], setup["code"], setup["entry"], items)
    os._exit(0)
