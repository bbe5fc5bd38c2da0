"""Answers its first call, then ends its process in each, and when it loads again."""

import os, time

began = time.time()
if os.path.exists("began"):
    os._exit(1)
open("began", "w").close()


def solve(n):
    if n == 1:
        return "first"
    os._exit(1)
