"""Returns an int whose text takes very long to make."""

def solve(n):
    return 1 << 100000000
