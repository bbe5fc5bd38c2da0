"""Fork server: one per slot of the pool.

Started as `python -S -c <this file>`, with the other modules, sys.path and the
limits as JSON on standard input and the control socket as descriptor 3. Each request is
one byte:

    F  fork a child for the socket that comes with it (SCM_RIGHTS)
    E  end that child and all it left behind; answers its wait status, int32
       little-endian, or -1 if there was no child

The zygote never reads a job: the child does, from its own socket, so no
candidate can find another's text in inherited memory.
"""

import json
import os
import sys


def load_modules(sources):
    """Makes the harness's modules from memory: no file that a candidate
    could rewrite is ever imported."""
    import types

    for name, source in sources:
        module = types.ModuleType(name)
        sys.modules[name] = module
        exec(compile(source, name + ".py", "exec"), module.__dict__)


def preload(names):
    import importlib

    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # not every Python has every module


def become_subreaper():
    """Makes orphans of a candidate children of the zygote, so that it can
    end them. Returns libc's prctl, or None where there is none."""
    import ctypes

    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        return None
    set_child_subreaper = 36
    prctl(set_child_subreaper, 1, 0, 0, 0)
    return prctl


def prefer_for_oom():
    try:
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write("1000")
    except OSError:
        pass


def own_children():
    """Pids of the zygote's children, by a look through /proc."""
    me = str(os.getpid())
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/" + name + "/stat", errors="replace") as f:
                    after_name = f.read().rpartition(")")[2].split()
            except OSError:
                continue
            if after_name[1] == me:
                yield int(name)


def kill(pid, group):
    import signal

    try:
        (os.killpg if group else os.kill)(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def reap(pid):
    """Kills the child, its process group and its orphans, and waits for all.
    Gives up on the whole zygote where they multiply faster than they die."""
    import time

    kill(pid, True)
    kill(pid, False)  # it may have left its group
    status = os.waitpid(pid, 0)[1]
    give_up = time.monotonic() + 2.0
    while True:
        try:
            done = os.waitpid(-1, os.WNOHANG)[0]
        except ChildProcessError:
            return status
        if done == 0:
            for survivor in own_children():
                kill(survivor, False)
            time.sleep(0.0005)
        if time.monotonic() > give_up:
            os._exit(70)


def tidy(directory):
    """Leaves directory as an empty one, whatever the candidate made of it."""
    try:
        if not os.listdir(directory) and os.path.samefile(directory, "."):
            return
    except OSError:
        pass  # it is gone, or no directory any more
    import shutil

    os.chdir("/")
    if os.path.islink(directory) or os.path.isfile(directory):
        os.unlink(directory)
    if os.path.isdir(directory):
        os.chmod(directory, 0o700)
    for top, names, _ in os.walk(directory):
        for name in names:
            path = os.path.join(top, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)  # before the walk, and rmtree, go there
    shutil.rmtree(directory, ignore_errors=True)
    os.mkdir(directory, 0o700)
    os.chdir(directory)


def serve(control, child, limits, directory, prctl):
    import socket
    import struct

    none = -1
    pid = none
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if request == b"F" and descriptors and pid == none:
            try:
                pid = os.fork()
            except OSError:
                pid = none  # the pool learns it from the answer to E
            if pid == 0:
                child.main(descriptors[0], limits, prctl)
            if pid != none:
                try:
                    os.setpgid(pid, pid)
                except OSError:
                    pass  # the child was faster
            os.close(descriptors[0])
        elif request == b"E":
            status = -1
            if pid != none:
                status, pid = reap(pid), none
                tidy(directory)
            control.sendall(struct.pack("<i", status))
        else:  # the pool is gone
            if pid != none:
                reap(pid)
            return


def main():
    import gc
    import socket

    setup = json.loads(sys.stdin.buffer.read())
    sys.path[:] = setup["path"]
    load_modules(setup["modules"])
    preload(setup["preload"])
    child = sys.modules["codea1_child"]
    limits = child.clip_limits(setup["limits"])
    prctl = become_subreaper()
    prefer_for_oom()

    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    os.dup2(devnull, 1)
    os.close(devnull)
    control = socket.socket(fileno=3)
    os.chdir(setup["directory"])
    gc.collect()
    gc.freeze()
    control.sendall(b"R")
    serve(control, child, limits, setup["directory"], prctl)
    os._exit(0)


main()
