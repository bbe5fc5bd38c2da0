"""Serves the pool's requests. forkserver.py describes the protocol.

Every object that serve changes costs the fork server the copy of a page per job,
and a reference to an object changes it. So this module imports functions by name:
access by way of a module changes the module, too.
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
    prepare(3)  # the frames of main, run and the function of a kind
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
            pid = forked  # if there is no child, the next answer says so
        close(descriptor)


def tidy(directory, moves):
    """Makes directory an empty directory again."""
    try:
        if not moves:
            chmod(directory, 0o700)  # cheaper than reading the mode first
            if not listdir(directory):
                return
        elif os.stat(directory).st_mode == UNTOUCHED and os.path.samefile(directory, ".") and not listdir(directory):
            return
    except OSError:
        pass  # the candidate removed or replaced it
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
    """Removes a file or a directory. It moves inner directories up first, so that
    no path gets long in a deep tree."""
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
