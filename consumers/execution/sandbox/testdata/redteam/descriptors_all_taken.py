"""Holds as many open files as it may, in many processes, then ends without an
answer."""

import os, socket, time


def solve(n):
    for _ in range(30):
        try:
            if os.fork() == 0:
                held = []
                try:
                    while True:
                        held += [os.pipe(), socket.socketpair()]
                except OSError:
                    time.sleep(60)
        except OSError:
            break
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        os._exit(1)
