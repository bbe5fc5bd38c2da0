"""Returns a value nested very deep."""

def solve(n):
    value = []
    for _ in range(1000000):
        value = [value]
    return value
