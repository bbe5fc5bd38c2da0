package sandbox

import "time"

// jobTime is the time limits of a job and its items.
//
// The limits are those of Config, in wall-clock time. The time for which the
// child waited for a core does not count, because load on the machine is not the
// candidate's fault: when a limit has passed, that time is measured and added to
// the limit. A candidate with many processes makes itself wait. So the limit of an
// item is no longer extended once the candidate has used that much core time since
// the first extension.
type jobTime struct {
	each  time.Duration
	end   time.Time     // of the job
	left  time.Duration // by which the end may still be extended
	short bool          // the job ends before the item has had its time

	began, until time.Time // of the item
	usedBefore   time.Duration
	extended     bool // the item's limit, at least once

	measure  func() (used, waited time.Duration, ok bool) // by the child so far
	waited   time.Duration                                // at the last measurement
	measured time.Time
}

// Limits of the extensions, because a candidate can hide some of the time that it
// uses: an item may take mostLoad times its limit, and a job's limit is extended
// by at most mostExtension times itself.
const (
	mostLoad      = 20
	mostExtension = 5
)

func newJobTime(each, budget time.Duration) *jobTime {
	return &jobTime{each: each, end: time.Now().Add(budget), left: mostExtension * budget}
}

// follow measures a new child of a fork server from now on.
func (t *jobTime) follow(forkServer int) {
	t.measure = func() (used, waited time.Duration, ok bool) { return coreTimeOf(descendantsOf(forkServer)) }
	t.waited, t.measured = 0, time.Now()
}

// started notes that the child has begun. The time until then does not count.
func (t *jobTime) started() {
	now := time.Now()
	t.end, t.measured = t.end.Add(now.Sub(t.measured)), now
}

// begin starts the time of an item, or of loading.
func (t *jobTime) begin() {
	t.began, t.extended = time.Now(), false
	t.until = t.began.Add(t.each)
	t.short = t.end.Before(t.until)
}

// limit returns the time at which the item's time is up.
func (t *jobTime) limit() time.Time {
	if t.short {
		return t.end
	}
	return t.until
}

// took returns the time of the item so far, without its extensions.
func (t *jobTime) took() time.Duration {
	return max(0, time.Since(t.began)-t.until.Sub(t.began)+t.each)
}

// extend adds the time for which the child waited for a core to the limits. It
// reports whether there was enough of it.
func (t *jobTime) extend() bool {
	used, waited, ok := t.measure()
	if !ok {
		return false
	}
	now := time.Now()
	more := min(waited-t.waited, now.Sub(t.measured), t.left)
	t.waited, t.measured = waited, now
	if !t.extended {
		t.usedBefore, t.extended = used, true
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
	return !t.extend()
}
