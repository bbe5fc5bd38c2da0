package sandbox

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"time"
)

// Job is the work of one child: items that it does one after the other, each
// with one reply.
type Job struct {
	Kind       JobKind
	Trusted    bool // suites: no model wrote the text
	Digests    bool // calls: the detail of a value over the size limit has a digest of the value
	ValueBytes int  // most bytes of a value's text; 0 means the configured limit
	Code       string
	Entry      string
	Items      []string
	Budget     time.Duration // for all items together; 0 means the job timeout
	Each       time.Duration // for one item; 0 means the call timeout

	// StopAtTimeout ends the job at the first item that runs over its time. A sandbox
	// server may do the other items all the same.
	StopAtTimeout bool
	// Enough reports, after each reply, that the items after it need not be done; nil: all
	// are done. A job that is tried again calls it with the first replies again. A sandbox
	// server may do the other items all the same.
	Enough func(replies []Reply) bool

	// Varied runs calls in a process with another hash seed, other addresses and
	// another time: a value that differs there is no expectation. Without an entry
	// point, the value of each item is a list: of the item's values in VariedOrders
	// evaluations, half of them with its sets in the opposite order.
	Varied bool
}

// VariedOrders is how often a varied job evaluates an expression. Once is too little:
// two objects have the usual order of addresses in every second process.
const VariedOrders = 8

// JobKind is the kind of a job's items.
type JobKind string

// The kinds of jobs.
const (
	JobCalls    JobKind = "calls"    // expressions to evaluate in the program
	JobScripts  JobKind = "scripts"  // test scripts to run in the program
	JobPrograms JobKind = "programs" // whole programs with their input
	JobProxies  JobKind = "proxies"  // test scripts with the known outcomes of calls; no program
	JobSuites   JobKind = "suites"   // test suites to parse; no program
)

// JobModules returns the name and the source of the modules of the harness that
// do jobs, in the order of their imports. They know nothing of isolation.
func JobModules() [][2]string {
	return readModules("values", "suites", "arguments", "truths", "pytests", "scripts", "programs", "objects", "proxies", "child")
}

// Flag returns the flag of the job for harness/child.py.
func (j *Job) Flag() bool { return j.Trusted || j.Digests }

// encode writes the job as harness/child.py reads it.
func (j *Job) encode() []byte {
	flag := ""
	if j.Flag() {
		flag = "1"
	}
	frame := make([]byte, 4)
	for _, field := range []string{string(j.Kind), flag, strconv.Itoa(j.ValueBytes), j.Code, j.Entry} {
		frame = appendField(frame, field)
	}
	callable := j.Kind == JobCalls && plainEntry.MatchString(j.Entry)
	for _, item := range j.Items {
		start := len(frame)
		if callable {
			var byValue bool
			if frame, byValue = appendCall(append(frame, 0, 0, 0, 0), j.Entry, item); byValue {
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

// The tags of frames, as harness/child.py sends them, and two for a frame that
// did not come.
const (
	TagBegun      = 'B' // the job is read
	TagLoaded     = 'L' // the program loads
	TagUnloadable = 'U' // it does not; the text says why
	TagValue      = 'V' // the text is a literal
	TagUnliteral  = 'X' // a value that no literal expresses; the text says which
	TagRaised     = 'R' // the text is the exception
	TagAssertion  = 'A' // the item's own assertion failed
	TagMissing    = 0   // no frame: the child ended
	TagOvertime   = 1   // no frame within the time limit
	frameHeader   = 5
)

// FrameBytes bounds a frame's text, given the most bytes of a value.
func FrameBytes(valueBytes int) int { return 4*valueBytes + 1<<20 }

// Reply is one frame of a child, or the reason why there was none.
type Reply struct {
	Tag  byte
	Text string
	Took time.Duration // without the time for which the child waited for a core, as far as a limit was extended by it
}

// Session holds the replies of all children of one job.
type Session struct {
	Loads     bool
	LoadError string
	LoadTook  time.Duration
	Replies   []Reply // one per item of the job, in order; fewer where time ran out
	bytes     int     // of the values among them
	enough    bool    // the job wants no more of them
}

// Blame completes the replies that a job's program prevents: the program
// ended the sandbox each time, or took its answers away.
func (s *Session) Blame(j *Job) {
	const reason = "the program ended its run, or took its answers away"
	if !s.Loads && s.LoadError == "" {
		s.LoadError = reason
	}
	if last := len(s.Replies) - 1; last >= 0 && s.Replies[last].Tag == TagMissing && s.Replies[last].Text == "" {
		s.Replies[last].Text = reason // it ended the fork server, too, which had no time to say how
	}
	s.complete(j, Reply{Tag: TagMissing, Text: reason})
}

// complete gives the items without a reply this one, if the program has loaded.
func (s *Session) complete(j *Job, r Reply) {
	for s.Loads && len(s.Replies) < len(j.Items) {
		s.Replies = append(s.Replies, r)
	}
}

// maxValuesBytes bounds the values of one job together. The bound is higher
// where sixteen of the largest values need more.
const maxValuesBytes = 16 << 20

// OverLimit is in the description of a value that is too large to be transferred, as
// harness/values.py has it.
const OverLimit = "over the size limit"

// digested begins the detail of a value with a digest.
const digested = "a value " + OverLimit + ", SHA-256 "

// Add notes the reply to the next item. A program may send anything; the pool
// keeps little of it.
func (s *Session) Add(j *Job, r Reply) {
	switch {
	case r.Tag == TagOvertime:
		r.Text = fmt.Sprintf("no result after %v", j.Each)
	case r.Tag != TagValue:
		r.Text = Clip(r.Text)
	case j.Kind != JobCalls && j.Kind != JobScripts:
	case s.bytes+len(r.Text) > max(maxValuesBytes, 16*j.ValueBytes):
		r.Tag, r.Text = TagUnliteral, "values "+OverLimit+" of all together"
	default:
		s.bytes += len(r.Text)
	}
	s.Replies = append(s.Replies, r)
	s.enough = j.StopAtTimeout && r.Tag == TagOvertime || j.Enough != nil && j.Enough(s.Replies)
}
