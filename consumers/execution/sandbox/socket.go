package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// quietTime is how long the pool lets a child work before it looks at what came.
const quietTime = 2 * time.Millisecond

// jobSocket is the pool's end of a child's job socket.
//
// A frame wakes who waits for it, which costs as much as the small call that it
// answers. So the pool waits for the end of the conversation alone, and looks at
// what came every quietTime; the frames stay in the socket meanwhile, whatever
// happens to the child. After a quietTime in which none came, it waits for each:
// the child may hang, and its time limit is near or far.
type jobSocket struct {
	fd       int
	file     *os.File  // the same, waited for; nil at first
	heard    bool      // something since the last wait
	deadline time.Time // of reading
	late     bool      // read from after it, once
	ctx      context.Context
	stop     func() bool // does not watch ctx any more
}

// send writes a job.
func (s *jobSocket) send(ctx context.Context, data []byte) error {
	s.ctx, s.heard = ctx, true // that it may begin to work
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
		if ctx.Err() != nil { // only now: later it moves the deadline
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
		return nil // what can be read without waiting is in time
	}
	return s.file.SetReadDeadline(deadline)
}

// Read implements io.Reader.
func (s *jobSocket) Read(p []byte) (int, error) {
	for s.file == nil {
		n, err := retried(func() (int, error) { return syscall.Read(s.fd, p) })
		switch {
		case err == nil && n == 0:
			return 0, io.EOF
		case !errors.Is(err, syscall.EAGAIN):
			s.heard = true
			return n, err
		case s.ctx.Err() != nil:
			return 0, s.ctx.Err()
		}
		if wait := min(quietTime, time.Until(s.deadline)); s.heard && wait > 0 {
			s.heard = false
			awaitHangUp(s.fd, wait)
		} else if err := s.attend(); err != nil {
			return 0, err
		}
	}
	n, err := s.file.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && s.ctx.Err() == nil && !s.late {
		// The pool may have been late itself: what is there by now is in time.
		s.late = true
		if m, late := retried(func() (int, error) { return syscall.Read(s.fd, p) }); m > 0 && late == nil {
			return m, nil
		}
	}
	return n, err
}

// attend begins to wait for what comes.
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
