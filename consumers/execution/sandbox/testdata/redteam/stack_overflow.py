"""Overflows the C stack."""

import sys

sys.setrecursionlimit(1 << 30)


def solve(n):
    return [solve(n)]
