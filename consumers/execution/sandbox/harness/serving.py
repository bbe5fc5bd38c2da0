"""What a fork server does for the pool, once it is ready. zygote.py describes
the protocol.

Every object that serve changes, if only by holding it for a moment, costs the
fork server the copy of a page per job. Hence names of functions here, not of
their modules, which would be changed, too.
"""

import itertools
import os
import socket
import stat
from codea1_child import main, prepare
from os import chmod, close, listdir
from struct import Struct

UNTOUCHED = stat.S_IFDIR | 0o700


def serve(control, keeper, directory):
    receive, answer, room = control.recvmsg, control.send, socket.CMSG_SPACE(4)
    fork, confine, end, moves = keeper.fork, keeper.confine, keeper.end, keeper.moves
    pack, descriptor_in = Struct("<i").pack, Struct("=i").unpack
    prepare(3)  # main, run and what does a kind
    none = -1
    pid = none
    while True:
        request, rights, _, _ = receive(1, room)
        if request == b"N":
            status = -1
            if pid != none:
                status, pid = end(pid), none
                tidy(directory, moves)
            answer(pack(status))
        elif request != b"F":  # the pool is gone
            if pid != none:
                end(pid)
            return
        (descriptor,) = descriptor_in(rights[0][2])
        forked = fork()
        if forked == 0:
            main(descriptor, confine)
        if forked is not None:
            pid = forked  # or the pool learns it from the next answer
        close(descriptor)


def tidy(directory, moves):
    """Leaves directory as an empty one, whatever the candidate made of it."""
    try:
        if not moves:
            chmod(directory, 0o700)  # a look at its mode costs more
            if not listdir(directory):
                return
        elif os.stat(directory).st_mode == UNTOUCHED and os.path.samefile(directory, ".") and not listdir(directory):
            return
    except OSError:
        pass  # it is gone, or no directory any more
    os.chdir("/")
    if os.path.islink(directory) or os.path.isfile(directory):
        os.unlink(directory)
    os.makedirs(directory, 0o700, exist_ok=True)
    os.chmod(directory, 0o700)
    os.chdir(directory)
    while names := os.listdir("."):
        for name in names:
            remove(name)


def remove(name):
    """Removes a file, or a directory whose own directories it moves up: however
    deep they are nested, no path gets long."""
    if not is_directory(name):
        os.unlink(name)
        return
    os.chmod(name, 0o700)
    for inner in os.listdir(name):
        path = os.path.join(name, inner)
        if is_directory(path):
            os.chmod(path, 0o700)
            os.rename(path, unused_name())
        else:
            os.unlink(path)
    os.rmdir(name)


def unused_name(numbers=itertools.count()):
    for number in numbers:
        if not os.path.lexists(str(number)):
            return str(number)


def is_directory(path):
    return os.path.isdir(path) and not os.path.islink(path)
