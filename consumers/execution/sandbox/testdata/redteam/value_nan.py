"""Returns values that compare in odd ways."""

def solve(n):
    return [float("nan"), -0.0, True, float("inf")][n % 4]
