"""Returns a value over every limit."""

def solve(n):
    return "x" * (1 << 27)
