package natsbus

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// endSilent makes the kernel end a connection on which nothing that was sent is
// acknowledged for silentTimeout. A slow link acknowledges, so it stays.
func endSilent(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silentTimeout.Milliseconds()))
	})
	return errors.Join(err, failed)
}
