"""Reads the limits of other processes, which tell which of them exist."""

import os, resource


def solve(n):
    for pid in (1, os.getppid()):
        if pid not in (0, os.getpid()):
            try:
                return "secret-%d" % n, resource.prlimit(pid, resource.RLIMIT_AS)
            except OSError:
                pass
    return None
