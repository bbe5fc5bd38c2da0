"""Sends literal text meant to upset the parser."""

import os


def solve(n):
    text = b"[" * 200000
    os.write(3, b"V" + len(text).to_bytes(4, "little") + text)
