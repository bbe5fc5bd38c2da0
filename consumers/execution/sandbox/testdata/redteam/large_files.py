"""Makes files with more in them than there is room: sparse, preallocated,
without a name."""

import os


def solve(n):
    made = []
    for i in range(40):
        try:
            made.append(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600) if i % 2 else os.open("sparse-%d" % i, os.O_CREAT | os.O_RDWR))
            for size in (1 << 40, 1 << 30, 1 << 19):
                try:
                    os.posix_fallocate(made[-1], 0, size)
                    os.truncate(made[-1], size)
                except OSError:
                    pass
        except OSError:
            pass
    return sum(os.fstat(d).st_size for d in made)
