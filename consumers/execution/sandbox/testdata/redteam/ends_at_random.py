"""Ends its process at random, in half of its loads and calls."""

import os


def even():
    return os.urandom(1)[0] % 2 == 0


if even():
    os._exit(1)


def solve(n):
    if even():
        os.kill(os.getpid(), 11)
    os._exit(2)
