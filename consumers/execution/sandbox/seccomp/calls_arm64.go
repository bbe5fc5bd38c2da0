//go:build linux

package seccomp

import "golang.org/x/sys/unix"

const (
	architecture   = unix.AUDIT_ARCH_AARCH64
	foreignNumbers = 0x40000000 // no call has such a number
)

// conditionsHere is empty: this architecture has no call under an older number.
var conditionsHere []condition

// allowedHere are the calls with other names on this architecture.
var allowedHere = []uint32{unix.SYS_FSTATAT, unix.SYS_RENAMEAT}
