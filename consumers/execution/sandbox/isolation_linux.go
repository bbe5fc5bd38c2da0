package sandbox

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes starts a fork server as process 1 of its namespaces, with the
// privileges to set them up: harness/isolation.py drops those that are not needed
// later.
//
// The fork server has a session of its own: Ctrl-C in the terminal stops the
// stage, which then ends its fork servers in order.
func processAttributes(level Level) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if level != LevelIsolated {
		return attributes
	}
	attributes.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if os.Geteuid() == 0 {
		// Root inside is root outside while the file system is set up, because
		// Python may be below a directory that only root can enter. Then the fork
		// server becomes the other user for good.
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: unprivilegedID, HostID: unprivilegedID, Size: 1}}
		attributes.UidMappings, attributes.GidMappings = ids, ids
		attributes.GidMappingsEnableSetgroups = true
		attributes.Credential = &syscall.Credential{}
		return attributes
	}
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: unprivilegedID, HostID: os.Geteuid(), Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: unprivilegedID, HostID: os.Getegid(), Size: 1}}
	attributes.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	return attributes
}
