"""Fork server: one per slot of the pool.

Started as `python -S -c <this file>`, with the other modules, sys.path, the
level of isolation and the limits as JSON on standard input and the control
socket as descriptor 3. Each request is one byte:

    F  fork a child for the socket that comes with it (SCM_RIGHTS)
    N  end that child and all it left behind, answer its wait status, int32
       little-endian, or -1 if there was no child, and do as for F

Before the first request it answers R and the version of Landlock in use, a
byte, or N and why the machine does not give the level of isolation that was
asked for.

The zygote never reads a job: the child does, from its own socket, so no
candidate can find another's text in inherited memory.
"""

import itertools
import json
import os
import stat
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


def prefer_for_oom():
    """Out of memory, the machine ends a sandbox before anything else, and its
    child, which confine makes a better choice still, before the fork server.
    Returns /proc, for the child to do so."""
    try:
        processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with open("self/oom_score_adj", "w", opener=lambda path, flags: os.open(path, flags, dir_fd=processes)) as f:
            f.write("500")
    except OSError:
        return None
    return processes


def tidy(directory, moves):
    """Leaves directory as an empty one, whatever the candidate made of it."""
    try:
        found = os.stat(directory)
        untouched = found.st_mode == stat.S_IFDIR | 0o700 and not os.listdir(directory)
        if untouched and not (moves and not os.path.samefile(directory, ".")):
            return
    except OSError:
        pass  # it is gone, or no directory any more
    os.chdir("/")
    if os.path.islink(directory) or os.path.isfile(directory):
        os.unlink(directory)
    os.makedirs(directory, 0o700, exist_ok=True)
    os.chmod(directory, 0o700)
    os.chdir(directory)
    while names := os.listdir("."):
        for name in names:
            remove(name)


def remove(name):
    """Removes a file, or a directory whose own directories it moves up: however
    deep they are nested, no path gets long."""
    if not is_directory(name):
        os.unlink(name)
        return
    os.chmod(name, 0o700)
    for inner in os.listdir(name):
        path = os.path.join(name, inner)
        if is_directory(path):
            os.chmod(path, 0o700)
            os.rename(path, unused_name())
        else:
            os.unlink(path)
    os.rmdir(name)


def unused_name(numbers=itertools.count()):
    for number in numbers:
        if not os.path.lexists(str(number)):
            return str(number)


def is_directory(path):
    return os.path.isdir(path) and not os.path.islink(path)


def serve(control, child, keeper, directory):
    import socket
    import struct

    none = -1
    pid = none
    room = socket.CMSG_SPACE(4)
    while True:
        request, rights, _, _ = control.recvmsg(1, room)
        if request == b"N":
            status = -1
            if pid != none:
                status, pid = keeper.end(pid), none
                tidy(directory, keeper.moves)
            control.send(struct.pack("<i", status))
        elif request != b"F":  # the pool is gone
            if pid != none:
                keeper.end(pid)
            return
        descriptor = int.from_bytes(rights[0][2], sys.byteorder)
        forked = keeper.fork()
        if forked == 0:
            child.main(descriptor, keeper)
        if forked is not None:
            pid = forked  # or the pool learns it from the next answer
        os.close(descriptor)


def set_limits(limits):
    """Sets limits, as far as this machine knows and allows them, here and so
    for every child."""
    import resource

    for name, value in limits.items():
        which = getattr(resource, name, None)
        if which is not None:
            hard = resource.getrlimit(which)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))


def main():
    import gc
    import socket

    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    setup = json.loads(sys.stdin.buffer.read())
    control = socket.socket(fileno=3)
    sys.path[:] = setup["path"]
    load_modules(setup["modules"][:1])
    pages = sys.modules["codea1_pages"]
    kept = pages.gather()
    maps = pages.open_maps()
    load_modules(setup["modules"][1:])
    processes = prefer_for_oom()
    isolation = sys.modules["codea1_isolation"]
    try:
        keeper, landlock = isolation.enclose(setup)
    except (isolation.Refused, OSError) as error:
        control.sendall(b"N" + str(error).encode())
        os._exit(0)
    # Only now: what a child may import later has to be found here too.
    preload(setup["preload"])

    devnull = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(devnull, standard)
    os.close(devnull)
    child = sys.modules["codea1_child"]
    if setup["grouped"]:
        child.processes = processes
    elif processes is not None:
        os.close(processes)
    child.rehearse()
    gc.collect()
    gc.freeze()
    pages.settle(maps)
    set_limits(setup["limits"])
    control.sendall(bytes([ord("R"), landlock]))
    serve(control, child, keeper, os.getcwd())
    del kept
    os._exit(0)


main()
