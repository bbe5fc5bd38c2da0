"""Fills the disk with files."""

import os


def solve(n):
    i = 0
    while True:
        i += 1
        with open("file-%d" % i, "wb") as f:
            f.write(bytes(1 << 19))
