package sandbox

import "time"

// jobTime is the time limits of a job and its items.
//
// The limits are those of Config, in wall-clock time. The time for which the
// child waited for a core does not count, because load on the machine is not the
// candidate's fault: when a limit has passed, that time is measured and added to
// the limit. A candidate with many processes makes itself wait. So the limit of an
// item is no longer extended once all processes of the candidate together have used
// that much core time for it. A control group counts the processes that have ended,
// too. Without one, a candidate that has several processes gets no extension.
type jobTime struct {
	each  time.Duration
	end   time.Time     // of the job
	left  time.Duration // by which the end may still be extended
	short bool          // the job ends before the item has had its time

	began, until time.Time // of the item

	measure  func() (used, waited time.Duration, ok bool) // by the child so far
	followed time.Time                                    // the child, since then
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

// follow measures a new child of a fork server from now on. group is the fork
// server's; it may be nil.
func (t *jobTime) follow(forkServer int, group *controlGroup) {
	before, counted := group.used()
	t.measure = func() (used, waited time.Duration, ok bool) {
		processes := descendantsOf(forkServer)
		used, waited, ok = coreTimeOf(processes)
		if now, known := group.used(); known && counted {
			return now - before, waited, ok
		}
		return used, waited, ok && len(processes) == 1
	}
	t.waited, t.followed = 0, time.Now()
	t.measured = t.followed
}

// started notes that the child has begun. The time until then does not count.
func (t *jobTime) started() {
	now := time.Now()
	t.end, t.measured = t.end.Add(now.Sub(t.measured)), now
}

// begin starts the time of an item, or of loading.
func (t *jobTime) begin() {
	t.began = time.Now()
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
	// The items before used no more than the time that they took, on one core.
	rest := t.each - max(0, used-t.began.Sub(t.followed))
	if more < max(t.each/50, time.Millisecond) || rest <= 0 || now.Sub(t.began) > mostLoad*t.each {
		return false
	}
	more = min(more, max(rest, t.each/10)) // then look again
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
