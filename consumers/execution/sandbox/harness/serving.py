"""Serves the pool's requests. forkserver.py describes the protocol.

Every object that serve changes costs the fork server the copy of a page per job,
and a reference to an object changes it. So this module imports functions by name:
access by way of a module changes the module, too.
"""

import socket
from codea1_child import main, prepare
from os import close, stat, utime
from struct import Struct

BEGINNING = 0, 0  # times of access and of modification


def serve(control, keeper, directory):
    receive, answer, room = control.recvmsg, control.send, socket.CMSG_SPACE(4)
    fork, confine, end, renew = keeper.fork, keeper.confine, keeper.end, keeper.renew
    pack, descriptor_in = Struct("<i").pack, Struct("=i").unpack
    prepare(3)  # the frames of main, run and the function of a kind
    none = -1
    pid = none
    keep = not times_are_coarse(directory)
    untouched = tidy(directory, None, renew)
    while True:
        request, rights, _, _ = receive(1, room)
        if request == b"N":
            status = -1
            if pid != none:
                status, pid = end(pid), none
                untouched = tidy(directory, untouched if keep else None, renew)
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


def tidy(directory, untouched, renew):
    """Makes directory an empty directory again if a child has changed it. Returns its
    look now. Its times are the same for every child: the change time is that of utime."""
    try:
        same = look(directory) == untouched
    except OSError:
        same = False  # the candidate removed or replaced it
    if not same:
        renew(directory)
    utime(directory, BEGINNING)
    return look(directory)


def look(path):
    """Returns the attributes of a directory that changes of it and of its entries
    change."""
    s = stat(path)
    return s.st_ino, s.st_mode, s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns


def times_are_coarse(directory):
    """Whether two changes in a row can leave the same change time, as they do before
    Linux 6.13: a candidate could then hide that it made files."""
    utime(directory, BEGINNING)
    before = look(directory)
    utime(directory, BEGINNING)
    return look(directory) == before
