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

// MostReloads is how many fresh children in a row may fail to load a program that
// has loaded once.
const MostReloads = 3

// NotAgain is the reply to the items that are left then. They count as raised: a
// program that could leave them unanswered would choose its own tests.
const NotAgain = "the program does not load again after a call that ended its process"

// do does a job in children of the fork server: a fresh child does the rest of
// the items after each that hangs or kills its child. With an error it also returns
// the replies that came.
func (f *forkServer) do(ctx context.Context, j Job) (Session, error) {
	var s Session
	limits := newJobTime(j.Each, j.Budget)
	for failed := 0; ; {
		rest := j
		rest.Items = j.Items[len(s.Replies):]
		loaded, err := f.child(ctx, rest, limits, &s)
		if err != nil || !s.Loads || s.enough || len(s.Replies) == len(j.Items) {
			return s, err
		}
		if failed++; loaded {
			failed = 0
		}
		over := limits.over()
		if failed == MostReloads || over && failed > 1 { // the last one may have lacked the time
			s.complete(&j, Reply{Tag: TagRaised, Text: NotAgain})
			return s, nil
		}
		if over {
			return s, nil
		}
	}
}

// child runs a job's items in one child and adds its replies to s. It reports
// whether the program loaded.
func (f *forkServer) child(ctx context.Context, j Job, limits *jobTime, s *Session) (loaded bool, err error) {
	socket, err := f.fork()
	if err != nil {
		return false, err
	}
	f.frames.Reset(socket)
	limits.follow(f.command.Process.Pid, f.group)
	c := conversation{ctx: ctx, socket: socket, in: f.frames, most: FrameBytes(j.ValueBytes), time: limits}
	unwatch := f.watch()
	loaded, talkErr := talk(&c, j, s)
	unwatch()
	closeErr := socket.close()
	endErr := f.end()
	if errors.Is(talkErr, errEnded) && endErr == nil {
		return false, errEnded
	}
	if err := errors.Join(talkErr, endErr, closeErr); err != nil {
		return false, err
	}
	last := len(s.Replies) - 1
	died := loaded && last >= 0 && s.Replies[last].Tag == TagMissing
	diedLoading := !s.Loads && s.LoadError == ""
	if !died && !diedLoading {
		return loaded, nil
	}
	status, err := f.ended()
	if err != nil {
		return false, err
	}
	if died {
		s.Replies[last].Text = describeEnd(status)
	} else {
		s.LoadError = describeEnd(status) + " while loading"
	}
	return loaded, nil
}

// talk sends the job and collects one reply per item, up to the first item
// that hangs or kills the child. It reports whether the program loaded. An error is
// a failure of the sandbox.
func talk(c *conversation, j Job, s *Session) (loaded bool, err error) {
	if err := c.send(j); err != nil {
		return false, err
	}
	began, err := c.next(time.Now().Add(startTimeout))
	if err != nil {
		return false, err
	}
	if began.Tag != TagBegun {
		return false, errors.New("the child ended before it began")
	}
	c.time.started()
	load, err := c.nextInTime()
	switch {
	case err != nil:
		return false, err
	case load.Tag == TagLoaded:
		s.Loads, s.LoadTook = true, max(s.LoadTook, load.Took)
	case s.Loads:
		return false, nil
	case load.Tag == TagUnloadable:
		s.LoadError = Clip(load.Text)
		return false, nil
	case load.Tag == TagOvertime:
		s.LoadError = fmt.Sprintf("still loading after %v", j.Each)
		return false, nil
	default:
		return false, nil // it died: child says how
	}
	for range j.Items {
		if c.time.over() {
			return true, nil
		}
		r, err := c.nextInTime()
		if err != nil {
			return true, err
		}
		if r.Tag == TagOvertime && c.time.short {
			return true, nil // the job ran out of time, not the item
		}
		s.Add(&j, r)
		if s.enough || r.Tag == TagMissing || r.Tag == TagOvertime {
			return true, nil
		}
	}
	return true, nil
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
