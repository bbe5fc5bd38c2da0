"""The fork server: one per slot of the pool.

The pool starts it as `python -S -c <this file>`. Standard input is a JSON object
with the other modules, sys.path, the level of isolation and the limits.
Descriptor 3 is the control socket. Each request is one byte:

    F  fork a child for the socket that comes with the request (SCM_RIGHTS)
    N  end that child and all that it started, answer its wait status (int32
       little-endian, -1 if there was no child), then do the same as for F

Before the first request the fork server answers R and the version of Landlock in
use, one byte. If the machine does not give the level of isolation, it answers N
and the reason.

The fork server never reads a job. The child reads it from its own socket, so
no candidate finds another candidate's text in inherited memory.
"""

import json
import marshal
import os
import sys


def compiled(sources):
    """Returns name and marshalled code of each module."""
    return [(name, marshal.dumps(compile(source, name + ".py", "exec"))) for name, source in sources]


def load_modules(codes):
    """Makes the harness's modules from memory, so that no file is imported that a
    candidate could rewrite. The code is loaded here, not compiled: its objects
    are then close together, and a child copies few pages of them."""
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


def address_space(maps):
    """Returns the bytes that this process's mappings take, or 0 if they are not known."""
    return sum(end - start for start, end, _, _ in sys.modules["codea1_pages"].mappings(maps)) if maps else 0


def add_interactive():
    """Adds the built-in functions that the site module makes. It is not imported, but
    `python file.py` has them."""
    import _sitebuiltins
    import builtins

    builtins.exit, builtins.quit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)"), _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
    builtins.help = _sitebuiltins._Helper()


def prefer_for_oom():
    """Makes the kernel choose a sandbox first when memory runs out. A child makes
    itself an even better choice (end_first), so it ends before its fork server.
    Returns a descriptor of /proc for the child."""
    try:
        processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with open("self/oom_score_adj", "w", opener=lambda path, flags: os.open(path, flags, dir_fd=processes)) as f:
            f.write("500")
    except OSError:
        return None
    return processes


def set_limits(limits):
    """Sets the limits that this machine knows and allows. Every child inherits
    them."""
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
    # After enclose: a child must find the same files when it imports more.
    preload(setup["preload"])
    before = address_space(maps)
    preload(["numpy"])
    setup["limits"]["RLIMIT_AS"] += address_space(maps) - before  # a program that does without it loses nothing
    add_interactive()
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
    if setup["varied"]:
        child.vary()
        child.varied = True
    gc.freeze()
    set_limits(setup["limits"])
    control.sendall(bytes([ord("R"), landlock]))
    sys.modules["codea1_serving"].serve(control, keeper, os.getcwd())
    del kept
    os._exit(0)


main()
