"""Announces a frame of four gigabytes."""

import os


def solve(n):
    os.write(3, b"V\xff\xff\xff\xff" + b"9" * 100000)
