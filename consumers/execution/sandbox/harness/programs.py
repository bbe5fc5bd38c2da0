"""Runs a whole program as `python3 main.py` would, or a test file as pytest
would. Returns its output and its exit status.

The child forks once more and watches the program, which is process 2 of the pid
namespace. The program cannot end the child by a signal, because the child is
process 1. Where there is no namespace, it can: then it has failed.
"""

import base64
import json
import os
import resource
import select
import signal
import sys
import time
import types

JOB_SOCKET = 3
INPUT_NAME = "stdin"
POLL_SECONDS = 0.02
READS_AT_ONCE = 64


class Stream:
    """One output of the program, cut at a limit."""

    def __init__(self, limit):
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self.limit, self.kept, self.open = limit, bytearray(), True

    def read(self):
        """Reads the available output, in parts if the program writes without end.
        Output over the limit is read and dropped; otherwise the program would wait
        for ever."""
        for _ in range(READS_AT_ONCE):
            if not self.open:
                return
            try:
                chunk = os.read(self.reading, 1 << 16)
            except BlockingIOError:
                return
            self.open = bool(chunk)
            self.kept += chunk[: max(0, self.limit - len(self.kept))]

    def text(self):
        return self.kept.decode("utf-8", "replace")


def run(item, max_bytes):
    """Runs a program and returns a JSON object that says how it ended. item is the
    JSON object of wholeprogram.go."""
    request = json.loads(item)
    stdin = input_file(request.pop("stdin").encode("utf-8", "surrogatepass"))  # first: the directory is empty
    for name, content in (request.pop("files") or {}).items():
        if content is not None:
            write_file(name, base64.b64decode(content))
    name = "test_main.py" if request["language"] == "pytest" else "main.py"
    write_file(name, request["code"].encode("utf-8", "surrogatepass"))
    out, err = Stream(request["stream_bytes"]), Stream(request["stream_bytes"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # process 1 gets the signals that it handles
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        become_program(name, request, stdin, out.writing, err.writing)
    try:
        for descriptor in (stdin, out.writing, err.writing):
            os.close(descriptor)
        status = watch(pid, [out, err], began + request["seconds"])
        return describe_end(request, status, time.monotonic() - began, out, err)
    except BaseException as error:  # the program's doing: the sandbox worked until the program began
        return json.dumps({"return_code": -signal.SIGKILL, "stderr": "the program stopped its watcher: %r" % error})


def describe_end(request, status, seconds, out, err):
    files, left_out = fetch(request["fetch_files"], request["fetch_bytes"])
    return json.dumps({
        "overtime": status is None,
        "return_code": None if status is None else os.waitstatus_to_exitcode(status),
        "seconds": seconds,
        "stdout": out.text(),
        "stderr": err.text(),
        "files": files,
        "left_out": left_out,
    })


def write_file(name, content):
    if os.path.dirname(name):
        os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as file:
        file.write(content)


def input_file(content):
    """Returns a descriptor of a file with the content, which no longer has a name."""
    descriptor = os.open(INPUT_NAME, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    os.unlink(INPUT_NAME)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def fetch(names, left):
    """Returns the contents of the existing files, and the names of the files that
    do not fit into the bytes that are left."""
    files, left_out = {}, []
    for name in names:
        try:
            with open(name, "rb") as file:
                content = file.read(left + 1)
        except OSError:
            continue
        if len(content) > left:
            left_out.append(name)
            continue
        left -= len(content)
        files[name] = base64.b64encode(content).decode()
    return files, left_out


def watch(pid, streams, deadline):
    """Returns the program's wait status, or None if it ran over its time. It does
    not wait for processes that the program started."""
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
        # A program that has closed its outputs is likely to end soon.
        select.select(talking, [], [], min(left, POLL_SECONDS if talking else POLL_SECONDS / 20))


def become_program(name, request, *standard):
    """Never returns."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
    os.closerange(JOB_SOCKET, os.sysconf("SC_OPEN_MAX"))
    if request["memory_bytes"] > 0:
        resource.setrlimit(resource.RLIMIT_AS, (request["memory_bytes"],) * 2)
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

    for leave in ("exit", "quit"):  # programs expect these names of the site module
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
        inside = error.__traceback__.tb_next  # without this function's frame
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
