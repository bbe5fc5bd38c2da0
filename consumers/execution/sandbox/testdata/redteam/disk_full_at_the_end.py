"""Leaves a full disk and no answer."""

import os


def solve(n):
    for i in range(200):
        try:
            with open("filler-%d" % i, "wb") as file:
                file.write(bytes(1 << 20))
        except OSError:
            pass
    os.kill(os.getpid(), 9)
    os._exit(1)
