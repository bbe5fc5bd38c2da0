"""Returns a small value whose text is huge."""

def solve(n):
    value = ["x"]
    for _ in range(64):
        value = [value, value]
    return value
