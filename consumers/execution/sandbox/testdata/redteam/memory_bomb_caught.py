"""Takes all memory and goes on after each failure."""

def solve(n):
    held = []
    while True:
        try:
            held.append(bytearray(1 << 20))
        except MemoryError:
            pass
