package sandbox

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// awaitHangUp waits until the other end of a socket is closed, up to a limit. Data
// does not wake it.
func awaitHangUp(fd int, limit time.Duration) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.EPOLLRDHUP}}
	deadline := time.Now().Add(limit)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return
		}
		// Reading returns the error again.
		if _, err := unix.Poll(fds, int((left+time.Millisecond-1)/time.Millisecond)); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
