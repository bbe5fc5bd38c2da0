package sandbox

import "time"

// jobTime is how long a job's child is waited for.
//
// The limits are those of Config, in wall-clock time, less the time for which the
// machine kept the child waiting for a core. That is measured where a limit has
// passed, and put on top: what others do to the machine is no candidate's fault.
// A candidate with many processes keeps itself waiting; so what is put on top of
// an item's time ends when the candidate has used that time of a core once more.
type jobTime struct {
	each  time.Duration
	end   time.Time     // of the job
	left  time.Duration // most that the end may still be put off
	short bool          // the item has less time than each: the job's ends first

	began, until time.Time // the item's
	usedBefore   time.Duration
	prolonged    bool // once at least

	measure  func() (used, waited time.Duration, ok bool) // by the child so far
	waited   time.Duration                                // at the last measurement
	measured time.Time
}

// On a machine that many others want, an item may take mostLoad times its limit and
// a whole job, of which most items take a small part of theirs, mostPutOff times its
// own on top: a candidate can hide some of the time that it uses.
const (
	mostLoad   = 20
	mostPutOff = 5
)

func newJobTime(each, budget time.Duration) *jobTime {
	return &jobTime{each: each, end: time.Now().Add(budget), left: mostPutOff * budget}
}

// follow turns to a new child of a fork server.
func (t *jobTime) follow(zygote int) {
	t.measure = func() (used, waited time.Duration, ok bool) { return coreTimeOf(descendantsOf(zygote)) }
	t.waited, t.measured = 0, time.Now()
}

// started ends what counts for nobody: the time that a child took to be there.
func (t *jobTime) started() {
	now := time.Now()
	t.end, t.measured = t.end.Add(now.Sub(t.measured)), now
}

// begin starts the time of an item, or of loading.
func (t *jobTime) begin() {
	t.began, t.prolonged = time.Now(), false
	t.until = t.began.Add(t.each)
	t.short = t.end.Before(t.until)
}

// limit is when the item's time is up.
func (t *jobTime) limit() time.Time {
	if t.short {
		return t.end
	}
	return t.until
}

// prolong puts off the limits for as long as the child waited for a core, and
// reports whether that is worth while.
func (t *jobTime) prolong() bool {
	used, waited, ok := t.measure()
	if !ok {
		return false
	}
	now := time.Now()
	more := min(waited-t.waited, now.Sub(t.measured), t.left)
	t.waited, t.measured = waited, now
	if !t.prolonged {
		t.usedBefore, t.prolonged = used, true
	}
	if more < max(t.each/50, time.Millisecond) || used-t.usedBefore >= t.each || now.Sub(t.began) > mostLoad*t.each {
		return false
	}
	t.until, t.end, t.left = t.until.Add(more), t.end.Add(more), t.left-more
	return true
}

// over reports whether the job's time is up.
func (t *jobTime) over() bool {
	if time.Now().Before(t.end) {
		return false
	}
	t.begin()
	return !t.prolong()
}
