package stage

import (
	"sync"
	"time"
)

// busyMeter integrates the number of busy slots over time.
type busyMeter struct {
	mu     sync.Mutex
	active int
	since  time.Time // of the last change
	total  time.Duration
}

func (b *busyMeter) change(by int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.active += by
}

// read returns the busy time of all slots up to now.
func (b *busyMeter) read(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	return b.total
}

func (b *busyMeter) advance(now time.Time) {
	if d := now.Sub(b.since); d > 0 && b.active > 0 {
		b.total += time.Duration(b.active) * d
	}
	b.since = now
}

// busyShare computes the share of busy slots between two readings of a
// busyMeter. Work beyond the slots, as of a Meter, does not count.
type busyShare struct {
	slots int
	at    time.Time
	total time.Duration
}

func (b *busyShare) next(now time.Time, total time.Duration) float64 {
	interval, busy := now.Sub(b.at), total-b.total
	b.at, b.total = now, total
	if interval <= 0 {
		return 0
	}
	return min(1, float64(busy)/float64(interval)/float64(b.slots))
}
