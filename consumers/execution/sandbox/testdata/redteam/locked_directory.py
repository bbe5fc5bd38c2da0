"""Makes its directory hard to clean."""

import os


def solve(n):
    os.makedirs("a/b/c", exist_ok=True)
    os.symlink("/usr", "a/usr")
    os.chmod("a/b", 0)
    os.chmod("a", 0)
    os.chmod(".", 0)
