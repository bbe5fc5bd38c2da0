"""Takes all memory it can get."""

def solve(n):
    held = []
    while True:
        held.append(bytearray(1 << 24))
