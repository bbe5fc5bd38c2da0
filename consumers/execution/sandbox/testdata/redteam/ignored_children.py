"""Starts thousands of processes that end at once and that nobody waits for."""

import os, signal


def solve(n):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL if n == 1 else signal.SIG_IGN)
    for _ in range(3000):
        try:
            if os.fork() == 0:
                os._exit(0)
        except OSError:
            pass
    os._exit(1)
