package execution

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"
)

// job is what one child reads from its socket.
type job struct {
	kind       jobKind
	trusted    bool // suites: the text is no model's
	valueBytes int  // most bytes of a value's text
	code       string
	entry      string
	items      []string
	budget     time.Duration // for all items together; 0 means the job timeout
	each       time.Duration // for one item; 0 means the call timeout
}

// encode writes the job as harness/child.py reads it.
func (j *job) encode() []byte {
	trusted := ""
	if j.trusted {
		trusted = "1"
	}
	frame := make([]byte, 4)
	for _, field := range []string{string(j.kind), trusted, strconv.Itoa(j.valueBytes), j.code, j.entry} {
		frame = appendField(frame, field)
	}
	callable := j.kind == jobCalls && plainEntry.MatchString(j.entry)
	for _, item := range j.items {
		start := len(frame)
		if callable {
			var byValue bool
			if frame, byValue = appendCall(append(frame, 0, 0, 0, 0), j.entry, item); byValue {
				binary.LittleEndian.PutUint32(frame[start:], uint32(len(frame)-start-4)|valueBit)
				continue
			}
		}
		frame = appendField(frame[:start], item)
	}
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// valueBit marks the length of a call that goes by value.
const valueBit = 1 << 31

func appendField(frame []byte, field string) []byte {
	return append(binary.LittleEndian.AppendUint32(frame, uint32(len(field))), field...)
}

type jobKind string

const (
	jobCalls    jobKind = "calls"    // items are expressions to evaluate in the program
	jobScripts  jobKind = "scripts"  // items are test scripts to run in the program
	jobPrograms jobKind = "programs" // items are whole programs with their input
	jobProxies  jobKind = "proxies"  // items are test scripts with what is known of calls; no program
	jobSuites   jobKind = "suites"   // items are test suites to parse; no program
)

// The tags of harness/child.py.
const (
	tagBegun      = 'B'
	tagLoaded     = 'L'
	tagUnloadable = 'U'
	tagValue      = 'V'
	tagUnliteral  = 'X'
	tagRaised     = 'R'
	tagAssertion  = 'A'
	tagMissing    = 0 // no frame: the child ended
	tagOvertime   = 1 // no frame within the time limit
	frameHeader   = 5
)

// frameBytes bounds a frame's text, given the most bytes of a value.
func frameBytes(valueBytes int) int { return 4*valueBytes + 1<<20 }

// reply is one frame of a child, or why there was none.
type reply struct {
	tag  byte
	text string
}

// session is what all children of one job said together.
type session struct {
	loads     bool
	loadError string
	replies   []reply // one per item of the job, in order; fewer where time ran out
	bytes     int     // of the values among them
}

// maxValuesBytes bounds what the values of a program hold together, or sixteen of
// the largest do.
const maxValuesBytes = 16 << 20

// add notes the reply to the next item. Whatever a program sends, a pool keeps
// little of it.
func (s *session) add(j *job, r reply) {
	switch {
	case r.tag != tagValue:
		r.text = clip(r.text)
	case j.kind != jobCalls && j.kind != jobScripts:
	case s.bytes+len(r.text) > max(maxValuesBytes, 16*j.valueBytes):
		r = reply{tagUnliteral, "values over the size limit of all together"}
	default:
		s.bytes += len(r.text)
	}
	s.replies = append(s.replies, r)
}

var (
	// errEnded stops a session whose context is done; the fork server is fine.
	errEnded = errors.New("cancelled")
	// errForged is a child that breaks the protocol: a candidate's doing.
	errForged = errors.New("not an answer frame")
)

// forkServers does jobs in the pool's fork servers, on this machine.
type forkServers struct{ *Pool }

func (p forkServers) close() error { return errors.Join(removeAll(p.root), p.lock.Close()) }

func (p forkServers) run(ctx context.Context, j job) (session, error) {
	var done session
	err := p.with(ctx, "run "+string(j.kind), func(z *zygote) error {
		s := session{}
		limits := newJobTime(j.each, j.budget)
		for {
			rest := j
			rest.items = j.items[len(s.replies):]
			if err := p.child(ctx, z, rest, limits, &s); err != nil {
				return err
			}
			left := len(j.items) - len(s.replies)
			stuck := left == len(rest.items) // it loaded once and now does not
			if !s.loads || left == 0 || stuck || limits.over() {
				break
			}
		}
		done = s
		return nil
	})
	return done, err
}

// child runs a job's items in one child and adds what it says to s.
func (p *Pool) child(ctx context.Context, z *zygote, j job, limits *jobTime, s *session) error {
	socket, err := z.fork()
	if err != nil {
		return err
	}
	z.frames.Reset(socket)
	limits.follow(z.command.Process.Pid)
	c := conversation{ctx: ctx, socket: socket, in: z.frames, most: frameBytes(j.valueBytes), time: limits}
	unwatch := z.watch()
	talkErr := talk(&c, j, s)
	unwatch()
	closeErr := socket.close()
	endErr := z.end()
	if errors.Is(talkErr, errEnded) && endErr == nil {
		return errEnded
	}
	if err := errors.Join(talkErr, endErr, closeErr); err != nil {
		return err
	}
	last := len(s.replies) - 1
	died := last >= 0 && s.replies[last].tag == tagMissing
	diedLoading := !s.loads && s.loadError == ""
	if !died && !diedLoading {
		return nil
	}
	status, err := z.ended()
	if err != nil {
		return err
	}
	if died {
		s.replies[last].text = describeEnd(status)
	} else {
		s.loadError = describeEnd(status) + " while loading"
	}
	return nil
}

// talk sends the job and collects one reply per item, up to the first item
// that hangs or kills the child. Its errors are the sandbox's, never the
// candidate's.
func talk(c *conversation, j job, s *session) error {
	if err := c.send(j); err != nil {
		return err
	}
	began, err := c.next(time.Now().Add(startTimeout))
	if err != nil {
		return err
	}
	if began.tag != tagBegun {
		return errors.New("the child ended before it began")
	}
	c.time.started()
	loaded, err := c.nextInTime()
	switch {
	case err != nil:
		return err
	case loaded.tag == tagLoaded:
		s.loads = true
	case s.loads:
		return nil
	case loaded.tag == tagUnloadable:
		s.loadError = clip(loaded.text)
		return nil
	case loaded.tag == tagOvertime:
		s.loadError = fmt.Sprintf("still loading after %v", j.each)
		return nil
	default:
		return nil // it died: child knows how
	}
	for range j.items {
		if c.time.over() {
			return nil
		}
		r, err := c.nextInTime()
		if err != nil {
			return err
		}
		if r.tag == tagOvertime && c.time.short {
			return nil // it is the job that ran out of time
		}
		s.add(&j, r)
		if r.tag == tagMissing || r.tag == tagOvertime {
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
