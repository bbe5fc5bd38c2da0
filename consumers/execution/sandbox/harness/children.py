"""Forks and ends the children of a fork server; one keeper per kind of isolation.

A keeper has these members:

    fork     forks a child; returns 0 in the child and None if it cannot fork
    confine  gives up the child's privileges; the child calls it
    end      kills a child and all that it started; returns its wait status
    renew    makes the directory of the children an empty one again
"""

import ctypes
import itertools
import os
import signal
import time
from os import kill, killpg, setpgid, waitpid

CLONE_NEWPID = 0x20000000
SYS_LANDLOCK_RESTRICT_SELF = 446
PR_SET_PDEATHSIG = 1
MNT_DETACH = 2
GIVE_UP_SECONDS, GIVE_UP_LOADED_SECONDS = 2.0, 20.0  # of core time, and of wall-clock time on a busy machine

libc = ctypes.CDLL(None)
unshare, setns = getattr(libc, "unshare", None), getattr(libc, "setns", None)  # Linux has them
SIGKILL = int(signal.SIGKILL)

# fork without Python's hooks around it, which are a third of the cost of an idle
# child. They reseed random numbers and renew the locks of other threads; a fork
# server has no other threads. PyDLL keeps the interpreter's lock.
plain_fork = ctypes.PyDLL(None).fork
plain_fork.argtypes = ()


def make_keeper(level, held):
    """Returns the keeper for a level. held is the result of isolation.enclose."""
    return (PidNamespaces if level == "isolated" else ProcessGroups)(*held)


def end_now(pid, group=False):
    try:
        (killpg if group else kill)(pid, SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


class PidNamespaces:
    """Each child is process 1 of a pid namespace of its own: when it ends, the
    kernel ends all that it started, and it sees no other process."""

    def __init__(self, own_pids, forgo, mount):
        self.own_pids = own_pids  # descriptor of the fork server's pid namespace
        self.forgo = forgo  # gives up the privileges of the fork server
        self.mount = mount  # mounts an empty directory for children

    def fork(self):
        if unshare(CLONE_NEWPID) == -1:
            return None
        pid = plain_fork()
        if pid == 0:
            return 0
        if setns(self.own_pids, CLONE_NEWPID) == -1:
            os._exit(71)  # otherwise the next child shares this one's namespace
        return pid if pid > 0 else None

    def confine(self):
        setpgid(0, 0)  # a signal to the group reaches across namespaces
        self.forgo()

    def end(self, pid):
        end_now(pid)
        return waitpid(pid, 0)[1]

    def renew(self, directory):
        """Mounts a new directory: one that was emptied still tells how many files it
        held, by the numbers of the next ones."""
        os.chdir("/")
        if libc.umount2(directory.encode(), MNT_DETACH) == -1:
            os._exit(73)
        self.mount(directory)
        os.chdir(directory)


class ProcessGroups:
    """Each child leads a process group. Its orphans become children of the fork
    server, which finds them in /proc."""

    def __init__(self, ruleset=None):
        self.ruleset = ruleset  # descriptor of the Landlock rules for children
        self.prctl = getattr(libc, "prctl", None)  # Linux has it

    def fork(self):
        pid = plain_fork()
        if pid > 0:
            self.lead(pid)
        return pid if pid >= 0 else None

    def confine(self):
        self.lead(0)
        if self.prctl is not None:
            self.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        if self.ruleset is not None and libc.syscall(SYS_LANDLOCK_RESTRICT_SELF, self.ruleset, 0) == -1:
            os._exit(72)

    def renew(self, directory):
        os.chdir("/")
        if os.path.islink(directory) or os.path.isfile(directory):
            os.unlink(directory)  # the candidate replaced it
        os.makedirs(directory, 0o700, exist_ok=True)
        os.chmod(directory, 0o700)
        os.chdir(directory)
        while names := os.listdir("."):
            for name in names:
                remove(name)

    def lead(self, pid):
        try:
            setpgid(pid, pid)
        except OSError:
            pass  # the parent or the child has done it already

    def end(self, pid):
        """Ends the whole fork server if orphans multiply faster than they end."""
        end_now(pid, group=True)
        end_now(pid)  # it may have left its group
        status = waitpid(pid, 0)[1]
        give_up, loaded = time.process_time() + GIVE_UP_SECONDS, time.monotonic() + GIVE_UP_LOADED_SECONDS
        while True:
            try:
                done = waitpid(-1, os.WNOHANG)[0]
            except ChildProcessError:
                return status
            if done == 0:
                for survivor in own_children():
                    end_now(survivor)
                time.sleep(0.0005)
            if time.process_time() > give_up or time.monotonic() > loaded:
                os._exit(70)


def own_children():
    """Yields the pids of this process's children, from /proc."""
    me = str(os.getpid())
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/" + name + "/stat", errors="replace") as f:
                    after_name = f.read().rpartition(")")[2].split()
            except OSError:
                continue
            if after_name[1] == me:
                yield int(name)


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
