"""Starts threads without an end."""

import threading, time


def solve(n):
    while True:
        threading.Thread(target=time.sleep, args=(60,)).start()
