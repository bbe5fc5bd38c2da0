"""Random numbers that are those of Go's math/rand/v2 for the same two seeds.

The built-in problems and the text of the shipped checkpoints depend on every
draw, so this must never change. Python's own generator makes no promise
between versions.
"""

_MASK = (1 << 64) - 1
_STATE_MASK = (1 << 128) - 1
_MULTIPLIER = 2549297995355413924 << 64 | 4865540595714422341
_INCREMENT = 6364136223846793005 << 64 | 1442695040888963407
_OUTPUT_MULTIPLIER = 0xDA942042E4DD58B5


class Random:
    """PCG with 128 bits of state and the output function DXSM."""

    def __init__(self, seed1, seed2):
        self._state = seed1 << 64 | seed2

    def uint64(self):
        state = self._state = (self._state * _MULTIPLIER + _INCREMENT) & _STATE_MASK
        high, low = state >> 64, state & _MASK
        high ^= high >> 32
        high = high * _OUTPUT_MULTIPLIER & _MASK
        high ^= high >> 48
        return high * (low | 1) & _MASK

    def below(self, n):
        """A number from 0 to n - 1."""
        if n & (n - 1) == 0:
            return self.uint64() & (n - 1)
        product = self.uint64() * n
        if product & _MASK < n:
            threshold = (1 << 64) % n
            while product & _MASK < threshold:
                product = self.uint64() * n
        return product >> 64

    def fraction(self):
        """A number from 0 up to but not including 1."""
        return (self.uint64() & (1 << 53) - 1) / (1 << 53)

    def choice(self, items):
        return items[self.below(len(items))]
