"""Leaves a daemon that waits for the next candidate."""

import os, time


def solve(n):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                try:
                    open("left-behind", "w").write("here")
                except OSError:
                    pass
                time.sleep(0.001)
        os._exit(0)
    return None
