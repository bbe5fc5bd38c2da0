"""Raises an exception whose message never comes."""

class Slow(Exception):
    def __str__(self):
        while True:
            pass
    __repr__ = __str__


def solve(n):
    raise Slow
