//go:build linux

package seccomp

import "golang.org/x/sys/unix"

const (
	architecture = unix.AUDIT_ARCH_X86_64
	// Calls of the x32 kind have this bit: the same kernel functions under
	// other numbers.
	foreignNumbers = 0x40000000
)

// conditionsHere are conditions of older calls that only this architecture has.
var conditionsHere = []condition{{number: unix.SYS_OPEN, argument: 1, without: unnamedFile}}

// allowedHere are the older calls that only this architecture has.
var allowedHere = []uint32{
	unix.SYS_CREAT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_NEWFSTATAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_GETDENTS,
	unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_CHMOD, unix.SYS_UTIME, unix.SYS_UTIMES,
	unix.SYS_DUP2, unix.SYS_PIPE, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_WAIT, unix.SYS_EVENTFD,
	unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_GETPGRP, unix.SYS_PAUSE, unix.SYS_ALARM, unix.SYS_TIME, unix.SYS_ARCH_PRCTL,
}
