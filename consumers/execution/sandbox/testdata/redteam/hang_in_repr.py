"""Hangs when its value is looked at."""

class Slow:
    def __repr__(self):
        while True:
            pass
    __str__ = __eq__ = __hash__ = __reduce__ = __iter__ = __len__ = __repr__


def solve(n):
    return Slow()
