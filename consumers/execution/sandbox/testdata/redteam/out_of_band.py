"""Sends and receives out-of-band data on sockets, of its own and of its answers."""

import os, socket


def solve(n):
    allowed = 0
    a, b = socket.socketpair()
    answers = socket.socket(fileno=os.dup(3))
    a.send(b"plain")
    for act in (
        lambda: a.send(b"x", socket.MSG_OOB), lambda: b.recv(1, socket.MSG_OOB | socket.MSG_DONTWAIT), lambda: b.recvmsg(1, 0, socket.MSG_OOB),
        lambda: a.sendmsg([b"x"], [], socket.MSG_OOB), lambda: answers.send(b"x", socket.MSG_OOB | socket.MSG_DONTWAIT), lambda: a.sendall(b"xy", socket.MSG_OOB),
    ):
        try:
            act()
            allowed += 1
        except PermissionError:
            pass
        except OSError:
            allowed += 1
    return "secret-%d" % n if allowed else None
