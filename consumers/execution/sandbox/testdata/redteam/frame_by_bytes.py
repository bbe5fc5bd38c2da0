"""Sends its answer byte by byte, each shortly before the pool would give up, so that
one answer takes for ever."""

import os
import time


def solve(n):
    text = b"'" + b"secret" * 60000 + b"'"
    for byte in b"V" + len(text).to_bytes(4, "little") + text:
        os.write(3, bytes([byte]))
        time.sleep(0.02)
