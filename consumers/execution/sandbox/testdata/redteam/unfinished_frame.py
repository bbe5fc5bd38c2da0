"""Begins an answer and never ends it; every byte is late."""

import os, time


def solve(n):
    os.write(3, b"V\x00\x10\x00\x00'")
    while True:
        os.write(3, b"x")
        time.sleep(0.05)
