"""Leaves a lock with a descriptor that is on its way in a ring of sockets."""

import array, fcntl, os, socket

path = os.__file__
mine = os.open(path, os.O_RDONLY)
seen = False
try:
    fcntl.flock(mine, fcntl.LOCK_SH | fcntl.LOCK_NB)
except OSError:
    pass
a, b = socket.socketpair()
for one, other in ((a, b), (b, a)):
    try:
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [mine, other.fileno(), one.fileno()]))])
        seen = True
    except OSError:
        pass


def solve(n):
    return "secret-%d" % n if seen else None
