"""Returns a list that changes while it is read."""

class Shifting(list):
    def __iter__(self):
        return iter(["secret-1"])
    def __len__(self):
        return 1
    def __getitem__(self, i):
        return "secret-1"


def solve(n):
    return Shifting([n])
