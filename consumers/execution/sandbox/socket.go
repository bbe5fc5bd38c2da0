package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// quietTime is the time between two reads while a child sends frames.
const quietTime = 2 * time.Millisecond

// jobSocket is the pool's end of a child's job socket.
//
// To wake a reader for each frame costs as much as the small call that the frame
// answers. So the reader waits only for the end of the conversation and reads the
// new frames every quietTime; they stay in the socket even if the child dies.
// After a quietTime without a frame, the reader waits for the next one, because the
// child may hang until its time limit.
type jobSocket struct {
	fd       int
	file     *os.File  // the same socket once a frame has been waited for; nil before
	active   bool      // a frame has come since the last wait
	deadline time.Time // of reading
	late     bool      // one read has been tried after the deadline
	ctx      context.Context
	stop     func() bool // stops watching ctx
}

// send writes a job.
func (s *jobSocket) send(ctx context.Context, data []byte) error {
	s.ctx, s.active = ctx, true // the child gets time to begin
	n, err := retried(func() (int, error) { return syscall.Write(s.fd, data) })
	if err != nil && !errors.Is(err, syscall.EAGAIN) {
		return os.NewSyscallError("write", err)
	}
	if rest := data[max(n, 0):]; len(rest) > 0 {
		if err := s.attend(); err != nil {
			return err
		}
		if err := s.file.SetWriteDeadline(time.Now().Add(startTimeout)); err != nil {
			return err
		}
		if ctx.Err() != nil { // a later cancellation moves the deadline
			return ctx.Err()
		}
		_, err := s.file.Write(rest)
		return err
	}
	return nil
}

// setReadDeadline bounds the reads that follow.
func (s *jobSocket) setReadDeadline(deadline time.Time) error {
	s.deadline, s.late = deadline, false
	if s.file == nil {
		return nil // data that is there already is in time
	}
	return s.file.SetReadDeadline(deadline)
}

// Read implements io.Reader.
func (s *jobSocket) Read(p []byte) (int, error) {
	for {
		n, err := retried(func() (int, error) { return syscall.Read(s.fd, p) })
		switch {
		case err == nil && n == 0:
			return 0, io.EOF
		case !errors.Is(err, syscall.EAGAIN):
			s.active = true
			return n, err
		case s.ctx.Err() != nil:
			return 0, s.ctx.Err()
		}
		if wait := min(quietTime, time.Until(s.deadline)); s.active && wait > 0 {
			s.active = false
			awaitHangUp(s.fd, wait)
			continue
		}
		if s.file == nil {
			if err := s.attend(); err != nil {
				return 0, err
			}
		}
		break
	}
	n, err := s.file.Read(p)
	s.active = n > 0
	if errors.Is(err, os.ErrDeadlineExceeded) && s.ctx.Err() == nil && !s.late {
		// The pool itself may be late: data that is there now is in time.
		s.late = true
		if m, late := retried(func() (int, error) { return syscall.Read(s.fd, p) }); m > 0 && late == nil {
			return m, nil
		}
	}
	return n, err
}

// attend prepares reads that wait for a frame.
func (s *jobSocket) attend() error {
	s.file = os.NewFile(uintptr(s.fd), "socket")
	if err := s.file.SetReadDeadline(s.deadline); err != nil {
		return err
	}
	s.stop = context.AfterFunc(s.ctx, func() { _ = s.file.SetDeadline(time.Unix(1, 0)) })
	return s.ctx.Err()
}

func (s *jobSocket) close() error {
	if s.file == nil {
		return os.NewSyscallError("close", syscall.Close(s.fd))
	}
	s.stop()
	return s.file.Close()
}

// retried repeats a system call that a signal to this process interrupts.
func retried(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, syscall.EINTR) {
			return max(n, 0), err
		}
	}
}
