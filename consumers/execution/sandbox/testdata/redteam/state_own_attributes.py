"""Leaves limits, masks, timers and names on its process, for a process that is forked from it."""

import os, resource, signal, threading

seen = os.umask(0o777) == 0o777 or resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 40 or signal.getitimer(signal.ITIMER_PROF)[0] > 0
seen = seen or bool(signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))) or threading.current_thread().name == "marked"
resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
signal.setitimer(signal.ITIMER_PROF, 1000)
threading.current_thread().name = "marked"


def solve(n):
    return "secret-%d" % n if seen else None
