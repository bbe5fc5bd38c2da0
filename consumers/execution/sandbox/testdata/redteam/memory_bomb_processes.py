"""Has many processes take memory, each within its own limit."""

import os, time


def solve(n):
    for _ in range(20):
        if os.fork() == 0:
            held = [b"x" * (1 << 20) for _ in range(90)]
            time.sleep(60)
    time.sleep(60)
