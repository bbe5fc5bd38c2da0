"""Writes output without an end."""

import os, sys


def solve(n):
    while True:
        sys.stdout.write("x" * 65536)
        os.write(2, b"y" * 65536)
