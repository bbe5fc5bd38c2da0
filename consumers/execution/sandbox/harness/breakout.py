"""Attempts to break out of the sandbox. Each function's docstring names the harm of
a success. The function returns a proof of it, or raises.

At a level without isolation an attempt may succeed with all rights of root. So no
attempt changes anything that outlives its process: where the kernel checks the
right before the arguments, the arguments are invalid.
"""

import ctypes
import errno
import os
import socket
import subprocess
import time

libc = ctypes.CDLL(None, use_errno=True)


def require(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "allowed"


def read_passwd():
    """reads the machine's files"""
    return open("/etc/passwd").readline()


def write_tmp():
    """writes files that the next candidate or the machine sees"""
    path = "/var/tmp/codea1-breakout-%d" % os.getpid()
    os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    os.unlink(path)
    return path


def write_python():
    """changes the Python of other programs"""
    os.close(os.open(os.__file__, os.O_WRONLY))
    return os.__file__


def see_processes():
    """sees the machine's processes"""
    return "%d entries in /proc" % len([n for n in os.listdir("/proc") if n.isdigit()])


def see_environment():
    """reads another process's environment"""
    return open("/proc/%d/environ" % os.getppid(), "rb").read(20)


def signal_parent():
    """signals a process outside"""
    parent = os.getppid()
    if parent == 0:
        raise PermissionError("no process outside has a number")
    os.kill(parent, 0)
    return parent


def connect():
    """reaches the network"""
    with socket.socket() as s:
        s.settimeout(0.2)
        try:
            s.connect(("127.0.0.1", 9))
        except (ConnectionRefusedError, TimeoutError):
            pass  # the network was reached
    return "a socket"


def run_program():
    """starts another program"""
    return subprocess.run(["/bin/true"]).returncode


def become_root():
    """becomes another user"""
    os.setuid(0)
    return os.getuid()


def make_namespace():
    """makes namespaces, where it has all capabilities"""
    return require(libc.unshare(0x10000000))


def allowed_but_senseless(result, number):
    if result != -1 or ctypes.get_errno() != number:
        require(result)
    return "allowed"


def mount():
    """mounts file systems"""
    return allowed_but_senseless(libc.mount(b"x", b"/no/such/directory", b"tmpfs", 0, None), errno.ENOENT)


def trace():
    """traces processes"""
    attach, nobody = 16, 0
    return allowed_but_senseless(libc.ptrace(attach, nobody, 0, 0), errno.ESRCH)


def share_memory():
    """leaves memory behind for the next candidate"""
    segment = libc.shmget(0, 4096, 0o1600)
    require(segment)
    remove = 0
    return require(libc.shmctl(segment, remove, None))


def fork_bomb():
    """starts processes without a limit"""
    for _ in range(100):
        if os.fork() == 0:
            time.sleep(60)
    return "100 processes"


def more_memory():
    """lifts its own limits"""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return "no limit"


def hold_memory():
    """holds several times its memory in several processes"""
    import mmap
    import resource

    each = min(resource.getrlimit(resource.RLIMIT_AS)[0], 1 << 29) * 6 // 10
    ready, say = os.pipe()
    for _ in range(5):
        if os.fork() == 0:
            held = mmap.mmap(-1, each, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            held.madvise(14)  # huge pages: quickly taken
            for at in range(0, each, 4096):
                held[at] = 1
            os.write(say, b"1")
            time.sleep(60)
    os.set_blocking(ready, False)
    held = b""
    while len(held) < 5:
        if os.waitpid(-1, os.WNOHANG)[0]:
            raise MemoryError("a process that held it was ended")
        try:
            held += os.read(ready, 5)
        except BlockingIOError:
            time.sleep(0.002)
    return "%d MiB" % (5 * each >> 20)


ATTEMPTS = [value for value in list(globals().values()) if callable(value) and value.__doc__ and value.__module__ == __name__]


def names():
    return [(attempt.__name__, attempt.__doc__) for attempt in ATTEMPTS]
