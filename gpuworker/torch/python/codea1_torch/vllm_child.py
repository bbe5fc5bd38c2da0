"""The main module of vLLM's processes: they die with the process that started them.

An engine that is killed could otherwise leave them behind with the memory of the GPU. multiprocessing imports the main module of
a process in the processes that it spawns, and in theirs, before anything else.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_PDEATHSIG = 1


@contextmanager
def as_main() -> Iterator[None]:
    """Makes this module the main module of processes that are spawned meanwhile.

    The calling thread must not end before they do: to the kernel, the thread is their parent.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = sys.modules[__name__]
    try:
        yield
    finally:
        sys.modules["__main__"] = main


if __name__ == "__mp_main__":
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1 and os.getpid() != 1:
        os._exit(1)  # the parent died before
