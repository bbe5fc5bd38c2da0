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

import json
import marshal
import os
import sys


def compiled(sources):
    """Returns name and marshalled code of each module."""
    return [(name, marshal.dumps(compile(source, name + ".py", "exec"))) for name, source in sources]


def load_modules(codes):
    """Makes the harness's modules from memory: no file that a candidate
    could rewrite is ever imported. The code is read, not compiled, here: its
    objects then lie close together, and a child copies few pages of them."""
    import types

    for name, code in codes:
        module = types.ModuleType(name)
        sys.modules[name] = module
        exec(marshal.loads(code), module.__dict__)


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
    modules = compiled(setup["modules"])
    load_modules(compiled(setup["first_modules"]))
    pages, isolation = sys.modules["codea1_pages"], sys.modules["codea1_isolation"]
    maps = pages.open_maps()
    kept = pages.gather(maps)
    processes = prefer_for_oom()
    try:
        held, landlock = isolation.enclose(setup)
    except (isolation.Refused, OSError) as error:
        control.sendall(b"N" + str(error).encode())
        os._exit(0)
    # Only now: what a child may import later has to be found here too.
    preload(setup["preload"])
    cold = pages.part(maps)
    load_modules(modules)
    keeper = sys.modules["codea1_children"].make_keeper(setup["level"], held)

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
    pages.settle(maps, cold)
    gc.freeze()
    set_limits(setup["limits"])
    control.sendall(bytes([ord("R"), landlock]))
    sys.modules["codea1_serving"].serve(control, keeper, os.getcwd())
    del kept
    os._exit(0)


main()
