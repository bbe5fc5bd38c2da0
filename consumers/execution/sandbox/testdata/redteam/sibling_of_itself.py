"""Starts processes as children of its own parent, which did not ask for them."""

import ctypes, os, signal, time

libc = ctypes.CDLL(None, use_errno=True)
CLONE, CLONE_PARENT = (56 if os.uname().machine == "x86_64" else 220), 0x8000


def solve(n):
    for _ in range(30):
        pid = libc.syscall(CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            os.setpgid(0, 0) if os.getpid() != 1 else None
            while True:
                time.sleep(1)
        if pid < 0:
            break
    os._exit(1)
