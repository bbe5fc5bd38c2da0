"""Leaves no process for anybody: forks and threads until both are refused, waits a
little, and ends without an answer."""

import os, threading, time


def solve(n):
    refused = 0
    while refused < 20:
        try:
            if os.fork() == 0:
                os.setsid()
                time.sleep(60)
                os._exit(0)
        except OSError:
            refused += 1
        try:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        except RuntimeError:
            refused += 1
    time.sleep(0.05)
    os._exit(1)
