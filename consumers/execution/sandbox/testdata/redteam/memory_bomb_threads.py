"""Has many threads take memory by way of the C library."""

import ctypes, threading

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p


def take():
    while True:
        block = libc.malloc(1 << 20)
        if block:
            ctypes.memset(block, 1, 1 << 20)


def solve(n):
    for _ in range(40):
        threading.Thread(target=take).start()
