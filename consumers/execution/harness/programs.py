"""Runs a whole program as `python3 main.py` would, or a test file as pytest
would, and returns what it wrote and how it ended.

The child forks once more: the program is process 2, and the child, which as
process 1 of the pid namespace it cannot signal, watches it.
"""

import base64
import json
import os
import select
import signal
import sys
import time
import types

JOB_SOCKET = 3
POLL_SECONDS = 0.02


class Stream:
    """One output of the program, cut at a limit."""

    def __init__(self, limit):
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self.limit, self.kept, self.open = limit, bytearray(), True

    def read(self):
        """Reads what is there now. What is over the limit is read and dropped,
        or the program would wait for ever."""
        while self.open:
            try:
                chunk = os.read(self.reading, 1 << 16)
            except BlockingIOError:
                return
            self.open = bool(chunk)
            self.kept += chunk[: max(0, self.limit - len(self.kept))]

    def text(self):
        return self.kept.decode("utf-8", "replace")


def run(item, max_bytes):
    """Returns the JSON object of the program's end. item is that of code,
    language, stdin, files (base64), fetch_files and seconds."""
    request = json.loads(item)
    for name, content in request["files"].items():
        write_file(name, base64.b64decode(content or ""))
    name = "test_main.py" if request["language"] == "pytest" else "main.py"
    write_file(name, request["code"].encode("utf-8", "surrogatepass"))
    stdin = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(stdin, (request["stdin"] or "").encode("utf-8", "surrogatepass"))
    os.lseek(stdin, 0, os.SEEK_SET)
    out, err = Stream(max_bytes // 4), Stream(max_bytes // 4)
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        become_program(name, request, stdin, out.writing, err.writing)
    for descriptor in (stdin, out.writing, err.writing):
        os.close(descriptor)
    status = watch(pid, [out, err], began + request["seconds"])
    return json.dumps({
        "overtime": status is None,
        "return_code": None if status is None else os.waitstatus_to_exitcode(status),
        "seconds": time.monotonic() - began,
        "stdout": out.text(),
        "stderr": err.text(),
        "files": fetch(request["fetch_files"], max_bytes),
    })


def write_file(name, content):
    if os.path.dirname(name):
        os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as file:
        file.write(content)


def fetch(names, max_bytes):
    files = {}
    for name in names:
        try:
            with open(name, "rb") as file:
                content = file.read(max_bytes)
        except OSError:
            continue
        max_bytes -= len(content)
        files[name] = base64.b64encode(content).decode()
    return files


def watch(pid, streams, deadline):
    """Returns the program's wait status, or None if it ran over its time. What
    it leaves running does not count."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        for stream in streams:
            stream.read()
        if ended:
            return status
        left = deadline - time.monotonic()
        if left <= 0:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
        talking = [s.reading for s in streams if s.open]
        # A program that has closed its outputs is about to end.
        select.select(talking, [], [], min(left, POLL_SECONDS if talking else POLL_SECONDS / 20))


def become_program(name, request, *standard):
    """Never returns."""
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
    os.closerange(JOB_SOCKET, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = sys.__stdin__ = open(0, closefd=False)
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = open(2, "w", errors="backslashreplace", closefd=False)
    sys.argv = [name]
    sys.path.insert(0, os.getcwd())
    code = 1
    try:
        code = run_pytest(name) if request["language"] == "pytest" else run_main(name, request["code"])
    finally:
        flush()
        os._exit(code & 0xFF)


def run_main(name, code):
    import _sitebuiltins
    import atexit
    import builtins
    import threading
    import traceback

    for leave in ("exit", "quit"):  # the site module's, which programs expect
        setattr(builtins, leave, _sitebuiltins.Quitter(leave, "Ctrl-D"))
    main = types.ModuleType("__main__")
    main.__file__ = name
    sys.modules["__main__"] = main
    result = 0
    try:
        exec(compile(code, name, "exec", 0, True), main.__dict__)
    except SystemExit as end:
        result = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if result and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException as error:
        result = 1
        inside = error.__traceback__.tb_next  # the program's frames, not this one
        traceback.print_exception(type(error), error, inside)
    threading._shutdown()
    atexit._run_exitfuncs()
    return result


def run_pytest(name):
    try:
        import pytest
    except ImportError:
        print("No module named pytest", file=sys.stderr)
        return 1
    return int(pytest.main(["-p", "no:cacheprovider", name]))


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # the program closed it
