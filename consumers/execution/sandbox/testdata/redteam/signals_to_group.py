"""Signals its process group, which a careless fork server would be in too."""

import os, signal


def solve(n):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGTSTP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
        os.kill(0, number)
        os.killpg(0, number)
        os.kill(-1, number) if os.fork() == 0 else None
    os.killpg(os.getpgrp(), signal.SIGKILL)
