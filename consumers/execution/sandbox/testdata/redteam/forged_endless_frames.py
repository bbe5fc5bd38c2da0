"""Sends answers without an end."""

import os


def solve(n):
    while True:
        os.write(3, b"V\x01\x00\x00\x001" * 1000)
