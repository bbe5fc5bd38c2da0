"""Ignores every signal and hangs."""

import signal

for number in range(1, 32):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass


def solve(n):
    while True:
        pass
