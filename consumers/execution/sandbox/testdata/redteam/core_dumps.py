"""Crashes in many processes, with limits on cores as high as they go."""

import os, resource, signal


def solve(n):
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        pass
    for _ in range(20):
        if os.fork() == 0:
            os.kill(os.getpid(), signal.SIGQUIT)
            os.abort()
    os.kill(os.getpid(), signal.SIGSEGV)
    os.abort()
