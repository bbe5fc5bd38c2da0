"""Isolates a fork server from the machine, before it forks a candidate.

The pool starts the fork server as process 1 of new user, mount, pid, net, ipc,
uts and cgroup namespaces (level "isolated"), or without namespaces ("confined",
"open"). enclose does the rest.

Kernel calls go through ctypes: the process itself must make them, and Python's
os module lacks them.
"""

import ctypes
import os
from functools import partial

HOST_NAME = b"sandbox"

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_NOATIME = 2, 4, 8, 1 << 10
MS_BIND, MS_REC, MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
MNT_DETACH = 2
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC = 1, 2, 4, 8
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
O_PATH = getattr(os, "O_PATH", 0o10000000)  # a Python built on an old system lacks the name
SYS_MOUNT_SETATTR = 442  # the same on every architecture
PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 22, 24, 36, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SECCOMP_MODE_FILTER = 2
CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL, CAP_SETUID, CAP_SYS_ADMIN = 1, 3, 5, 7, 21
CAPABILITY_VERSION = 0x20080522
SYS_LANDLOCK_CREATE_RULESET, SYS_LANDLOCK_ADD_RULE = 444, 445  # likewise
LANDLOCK_CREATE_RULESET_VERSION, LANDLOCK_RULE_PATH_BENEATH = 1, 1
WRITE_FILE, READ_FILE, READ_DIR, MAKE_CHAR, MAKE_BLOCK, TRUNCATE, IOCTL_DEV = 2, 4, 8, 1 << 6, 1 << 11, 1 << 14, 1 << 15
OF_FILES = 1 | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV  # the others are of directories
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """The machine refuses a part of the level; the argument names it."""


def check(what, result):
    if result == -1:
        raise Refused(what + ": " + os.strerror(ctypes.get_errno()))


def enclose(setup):
    """Isolates this process at the level of setup. Returns the arguments of the
    keeper of children (children.py), and the version of Landlock for children, 0
    for none."""
    level, directory, landlock = setup["level"], setup["directory"], 0
    if level == "isolated":
        own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        mount_scratch = scratch_mounter(setup["scratch_bytes"], setup["uid"])
        change_root(directory, setup["visible"], setup["scratch"], mount_scratch)
        check("sethostname", libc.sethostname(HOST_NAME, len(HOST_NAME)))
        held = own_pids, keep_little(setup["uid"]), mount_scratch
    else:
        os.chdir(directory)
        held = (None,)
        adopt_orphans()  # before the filter, which refuses that
        if level == "confined":
            landlock, *held = make_ruleset(setup["visible"], directory)
    if level != "open":
        forgo_privileges(bytes.fromhex(setup["filter"]))
    return held, landlock


# The file system: a root in memory with read-only views of the files of Python.


def mount(source, target, kind, flags, options=None):
    words = [None if text is None else text.encode() for text in (source, target, kind, options)]
    check("mount " + target, libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]))


def set_attributes(path, attributes, recursive):
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    flags = AT_RECURSIVE if recursive else 0
    check("mount_setattr " + path, libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, wanted, ctypes.c_size_t(32)))


def scratch_mounter(size, uid):
    """Returns a function that mounts an empty directory for the files of candidates.
    No atime: reading the directory leaves no trace."""
    options = "mode=700,uid=%d,gid=%d,size=%d,nr_inodes=4k" % (uid, uid, size)
    return lambda path: mount("scratch", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, options)


def change_root(root, visible, scratch, mount_scratch):
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("sandbox", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m,nr_inodes=2k")
    for path in visible:
        show(root, path)
    os.mkdir(root + scratch)
    mount_scratch(root + scratch)
    os.chdir(root)
    check("pivot_root", libc.syscall(PIVOT_ROOT[os.uname().machine], b".", b"."))
    check("umount", libc.umount2(b".", MNT_DETACH))  # the old root is on top
    set_attributes("/", ATTR_RDONLY, False)
    os.chdir(scratch)


def show(root, path):
    """Makes path visible below root, read-only."""
    target = root + path
    if not os.path.lexists(path) or os.path.lexists(target):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):  # such as /lib, where /usr holds everything
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.mkdir(target)
        attributes = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
        attributes = ATTR_RDONLY | ATTR_NOSUID | ATTR_NOEXEC
    mount(path, target, None, MS_BIND | MS_REC)
    set_attributes(target, attributes, True)


# Landlock restricts files and signals where there are no namespaces. The rules are
# made once, and every child applies them to itself with one call. They do not hold
# for the fork server: it can tidy up, and its children cannot signal it.


def make_ruleset(visible, directory):
    """Returns the kernel's version of Landlock and a descriptor of the rules: a child
    can read the visible paths and write in directory. Returns (0, None) where the
    kernel has no Landlock."""
    version = libc.syscall(SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_CREATE_RULESET_VERSION)
    if version < 1:
        return 0, None
    # Versions 1, 2, 3 and 5 add bits of files. Version 4 adds TCP. Version 6 adds
    # abstract sockets, and signals to processes that are not under the same rules.
    files = (1 << (13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16)) - 1
    handled = [files] + [3] * (version >= 4) + [3] * (version >= 6)
    rules = (ctypes.c_uint64 * len(handled))(*handled)
    ruleset = libc.syscall(SYS_LANDLOCK_CREATE_RULESET, rules, ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    check("landlock", ruleset)
    for path in visible:
        allow(ruleset, path, READ_FILE | READ_DIR)
    allow(ruleset, os.devnull, (READ_FILE | WRITE_FILE | TRUNCATE) & files)
    allow(ruleset, directory, files & ~MAKE_CHAR & ~MAKE_BLOCK)
    return version, ruleset


def allow(ruleset, path, access):
    try:
        descriptor = os.open(path, O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not every machine has every path
    if not os.path.isdir(path):
        access &= OF_FILES
    rule = access.to_bytes(8, "little") + descriptor.to_bytes(4, "little")
    check("landlock " + path, libc.syscall(SYS_LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, 0))
    os.close(descriptor)


def adopt_orphans():
    """Makes the orphans of children this process's children, so that it finds them."""
    prctl = getattr(libc, "prctl", None)  # Linux has it
    if prctl is not None:
        check("adopt orphans", prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


# Privileges.


def keep_little(uid):
    """Drops all capabilities except those for making pid namespaces and tidying up.
    Returns a function that drops those too and makes the caller uid, for children."""
    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == -1:
            break  # no more capabilities
    if os.getuid() != 0:  # an ordinary user has one uid only
        capability_setter(1 << CAP_SYS_ADMIN)()
        check("clear ambient capabilities", libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
        return capability_setter(0)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    capability_setter(1 << CAP_SYS_ADMIN | 1 << CAP_SETUID | 1 << CAP_DAC_OVERRIDE | 1 << CAP_FOWNER | 1 << CAP_KILL)()
    # A process that stops being root loses all capabilities. That costs a third of
    # capset by way of ctypes.
    return partial(os.setresuid, uid, uid, uid)


def capability_setter(mask):
    """Returns a function that makes mask the only capabilities. Its arguments are
    prepared, because children call it."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    data = (ctypes.c_uint32 * 6)(mask, mask, 0, 0, 0, 0)  # effective, permitted, inheritable; then bits 32 to 63
    return lambda: check("capset", libc.capset(header, data))


def forgo_privileges(filter):
    """Installs the system call filter for good, and keeps programs from gaining
    privileges when they start."""

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]

    check("no new privileges", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    program = Program(len(filter) // 8, filter)
    check("seccomp", libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0))
