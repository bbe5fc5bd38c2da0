"""Leaves threads that go on answering."""

import os, threading, time


def talk():
    while True:
        time.sleep(0.001)
        os.write(3, b"V\x04\0\0\0True")


def solve(n):
    threading.Thread(target=talk, daemon=True).start()
    time.sleep(0.05)
