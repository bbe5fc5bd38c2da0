//go:build linux && (amd64 || arm64)

package seccomp

import "golang.org/x/sys/unix"

// namespaceFlags are the flags of clone that make a namespace.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// Numbers of asm-generic/ioctls.h that package unix lacks.
const (
	fionbio  = 0x5421
	fionclex = 0x5450
	fioclex  = 0x5451
)

// scratchMount are the flags of the mount that holds a candidate's files.
const scratchMount = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME

// unnamedFile is the flag of open for a file without a name.
const unnamedFile = unix.O_TMPFILE &^ unix.O_DIRECTORY

// forkServerOnly are the calls with which a fork server gives every child a pid
// namespace and an empty directory. A candidate lacks the capability for them.
var forkServerOnly = []condition{
	{number: unix.SYS_UNSHARE, argument: 0, values: []uint32{unix.CLONE_NEWPID}},
	{number: unix.SYS_SETNS, argument: 1, values: []uint32{unix.CLONE_NEWPID}},
	{number: unix.SYS_MOUNT, argument: 3, values: []uint32{scratchMount}},
	{number: unix.SYS_UMOUNT2, argument: 1, values: []uint32{unix.MNT_DETACH}},
}

// conditions are the calls that are allowed with some arguments only.
var conditions = []condition{
	{number: unix.SYS_CLONE, argument: 0, without: namespaceFlags},
	// Shared memory without a file outlives its mapping and counts for no process: a
	// candidate could hide any amount of memory there.
	{number: unix.SYS_MMAP, argument: 3, notAll: unix.MAP_SHARED | unix.MAP_ANONYMOUS},
	// The limits of the caller only: a filter does not know the caller's number, so
	// only 0 stands for it.
	{number: unix.SYS_PRLIMIT64, argument: 0, values: []uint32{0}},
	// Duplicates, flags, locks and pipes. Leases, signals about a file, their
	// receivers and write hints are left out: they reach other processes, or stay
	// with a file that the next candidate uses.
	{number: unix.SYS_FCNTL, argument: 1, values: []uint32{
		unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
		unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW, unix.F_GETPIPE_SZ, unix.F_SETPIPE_SZ,
	}},
	// A file without a name does not show in the times of its directory, by which the
	// fork server knows that a candidate made files.
	{number: unix.SYS_OPENAT, argument: 2, without: unnamedFile},
	// Out-of-band data of pairs of sockets had errors in the kernel and serves no program.
	{number: unix.SYS_SENDTO, argument: 3, without: unix.MSG_OOB},
	{number: unix.SYS_RECVFROM, argument: 3, without: unix.MSG_OOB},
	{number: unix.SYS_RECVMSG, argument: 2, without: unix.MSG_OOB},
	// A pair is a pipe in both directions; asyncio needs one. All other calls on
	// sockets that name an address are refused.
	{number: unix.SYS_SOCKETPAIR, argument: 0, values: []uint32{unix.AF_UNIX}},
	{number: unix.SYS_PRCTL, argument: 0, values: []uint32{unix.PR_SET_PDEATHSIG, unix.PR_SET_NAME, unix.PR_GET_NAME}},
	// Python asks whether a file is a terminal, and sets whether it blocks.
	{number: unix.SYS_IOCTL, argument: 1, values: []uint32{unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCINQ, fionbio, fioclex, fionclex}},
}

// allowed are the calls of every architecture that need no condition. These are
// left out on purpose, among others: execve (a function starts no program), socket
// and the calls that name an address, sendmsg (a descriptor in flight outlives its
// process), ptrace and the calls that reach into other processes, SysV and POSIX message queues, memory outside a process's own limits
// (memfd_create, shmget, mlock), mounts, keys, bpf, perf, io_uring, userfaultfd.
var allowed = []uint32{
	// memory
	unix.SYS_BRK, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_MSYNC, unix.SYS_MEMBARRIER,
	// files
	unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV,
	unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_PREADV, unix.SYS_PWRITEV, unix.SYS_LSEEK, unix.SYS_FSTAT, unix.SYS_STATX,
	unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_FLOCK, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2,
	unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_UMASK, unix.SYS_READLINKAT,
	unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_RENAMEAT2, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_UTIMENSAT,
	unix.SYS_TRUNCATE, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FADVISE64, unix.SYS_SENDFILE, unix.SYS_COPY_FILE_RANGE,
	// waiting
	unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
	// the ends of a pair of sockets
	unix.SYS_SHUTDOWN, unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,
	// processes and threads; signals reach no further than the pid namespace
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_SET_TID_ADDRESS, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_FUTEX,
	unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETPGID, unix.SYS_SETPGID, unix.SYS_GETSID, unix.SYS_SETSID,
	unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGSUSPEND,
	unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL, unix.SYS_SETITIMER, unix.SYS_GETITIMER,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_GETCPU, unix.SYS_GETPRIORITY,
	// users, time, resources
	unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRESUID, unix.SYS_GETRESGID, unix.SYS_GETGROUPS, unix.SYS_CAPGET,
	// These calls only reduce rights: the permitted set never grows, and only the
	// fork server has another uid to change to and a Landlock ruleset.
	unix.SYS_CAPSET, unix.SYS_SETRESUID, unix.SYS_LANDLOCK_RESTRICT_SELF,
	unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETRUSAGE, unix.SYS_GETRLIMIT, unix.SYS_SETRLIMIT, unix.SYS_TIMES, unix.SYS_GETRANDOM,
	unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
}
