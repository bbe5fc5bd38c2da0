"""Leaves the time at which it read its directory."""

import os

seen = os.stat(".").st_atime > 1
os.listdir(".")


def solve(n):
    return "secret-%d" % n if seen else None
