package sandbox

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

var (
	// errEnded ends a conversation when its context is done; the fork server is fine.
	errEnded = errors.New("cancelled")
	// errForged is a frame that breaks the protocol: the candidate wrote it.
	errForged = errors.New("not an answer frame")
)

// do does a job in children of the fork server: a fresh child does the rest of
// the items after each that hangs or kills its child.
func (f *forkServer) do(ctx context.Context, j Job) (Session, error) {
	var s Session
	limits := newJobTime(j.Each, j.Budget)
	for {
		rest := j
		rest.Items = j.Items[len(s.Replies):]
		if err := f.child(ctx, rest, limits, &s); err != nil {
			return Session{}, err
		}
		left := len(j.Items) - len(s.Replies)
		stuck := left == len(rest.Items) // it loaded once and now does not
		if !s.Loads || left == 0 || stuck || limits.over() {
			return s, nil
		}
	}
}

// child runs a job's items in one child and adds its replies to s.
func (f *forkServer) child(ctx context.Context, j Job, limits *jobTime, s *Session) error {
	socket, err := f.fork()
	if err != nil {
		return err
	}
	f.frames.Reset(socket)
	limits.follow(f.command.Process.Pid)
	c := conversation{ctx: ctx, socket: socket, in: f.frames, most: FrameBytes(j.ValueBytes), time: limits}
	unwatch := f.watch()
	talkErr := talk(&c, j, s)
	unwatch()
	closeErr := socket.close()
	endErr := f.end()
	if errors.Is(talkErr, errEnded) && endErr == nil {
		return errEnded
	}
	if err := errors.Join(talkErr, endErr, closeErr); err != nil {
		return err
	}
	last := len(s.Replies) - 1
	died := last >= 0 && s.Replies[last].Tag == TagMissing
	diedLoading := !s.Loads && s.LoadError == ""
	if !died && !diedLoading {
		return nil
	}
	status, err := f.ended()
	if err != nil {
		return err
	}
	if died {
		s.Replies[last].Text = describeEnd(status)
	} else {
		s.LoadError = describeEnd(status) + " while loading"
	}
	return nil
}

// talk sends the job and collects one reply per item, up to the first item
// that hangs or kills the child. An error is a failure of the sandbox, never
// the candidate's.
func talk(c *conversation, j Job, s *Session) error {
	if err := c.send(j); err != nil {
		return err
	}
	began, err := c.next(time.Now().Add(startTimeout))
	if err != nil {
		return err
	}
	if began.Tag != TagBegun {
		return errors.New("the child ended before it began")
	}
	c.time.started()
	loaded, err := c.nextInTime()
	switch {
	case err != nil:
		return err
	case loaded.Tag == TagLoaded:
		s.Loads = true
	case s.Loads:
		return nil
	case loaded.Tag == TagUnloadable:
		s.LoadError = Clip(loaded.Text)
		return nil
	case loaded.Tag == TagOvertime:
		s.LoadError = fmt.Sprintf("still loading after %v", j.Each)
		return nil
	default:
		return nil // it died: child says how
	}
	for range j.Items {
		if c.time.over() {
			return nil
		}
		r, err := c.nextInTime()
		if err != nil {
			return err
		}
		if r.Tag == TagOvertime && c.time.short {
			return nil // the job ran out of time, not the item
		}
		s.Add(&j, r)
		if r.Tag == TagMissing || r.Tag == TagOvertime {
			return nil
		}
	}
	return nil
}

func describeEnd(status syscall.WaitStatus) string {
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		// The pool's own signal, if the child only closed its socket.
		return "the process left its test or was killed"
	case status.Signaled():
		return "the process died of " + status.Signal().String()
	}
	return fmt.Sprintf("the process exited with status %d", status.ExitStatus())
}
