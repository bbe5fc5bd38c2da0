package lease

import (
	"context"
	"errors"
	"sync"
	"time"

	"codea1/events"
	"codea1/events/internal/client"
)

const (
	renewalsPerTTL = 3
	// minTryTime is the shortest time limit of a renewal, because a machine may
	// be busy.
	minTryTime = time.Second
	// closeTimeout bounds the time to give a lease back. Without it the lease
	// ends with its TTL.
	closeTimeout = 2 * time.Second
)

// Lease implements events.Lease.
type Lease struct {
	register Register
	ttl      time.Duration
	cancel   context.CancelFunc // ends renew
	renewing sync.WaitGroup
	closing  sync.Once
	lost     chan struct{}

	// Used by renew, and by Close after it.
	record   Record
	revision uint64

	mu      sync.Mutex
	until   time.Time     // no other client can have the lease before
	err     error         // why the lease was lost or closed
	renewed chan struct{} // closed at the next change of until or err
}

var _ events.Lease = (*Lease)(nil)

func hold(register Register, config events.LeaseConfig, record Record, revision uint64, sent time.Time) *Lease {
	l := &Lease{
		register: register, ttl: config.TTL, lost: make(chan struct{}),
		record: record, revision: revision, until: sent.Add(config.TTL), renewed: make(chan struct{}),
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.renewing.Go(func() { l.renew(ctx) })
	return l
}

// Confirm implements events.Lease.
func (l *Lease) Confirm(ctx context.Context) error {
	for {
		l.mu.Lock()
		until, err, renewed := l.until, l.err, l.renewed
		l.mu.Unlock()
		if err != nil {
			return err
		}
		// The monotonic clock stops while a machine is suspended, and the wall
		// clock may be set. If either is past until, another client may have
		// the lease.
		if now := time.Now(); now.Before(until) && now.Round(0).Before(until.Round(0)) {
			return nil
		}
		select {
		case <-renewed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Lost implements events.Lease.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Close implements events.Lease.
func (l *Lease) Close() error {
	l.closing.Do(func() {
		l.cancel()
		l.renewing.Wait()
		if !l.end(events.ErrClosed) {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		l.record.Closed = true
		// The last renewal may have been stored without an answer; then the
		// second swap has the right revision. If both fail, the lease ends with
		// its TTL.
		if _, err := l.swap(ctx); err != nil {
			_, _ = l.swap(ctx)
		}
	})
	return nil
}

// end makes every later Confirm return err. It reports whether it is the first
// end.
func (l *Lease) end(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	l.err = err
	close(l.lost)
	close(l.renewed)
	l.renewed = make(chan struct{})
	return true
}

// renew replaces the record until ctx ends or another owner has replaced it.
func (l *Lease) renew(ctx context.Context) {
	for wait := l.ttl / renewalsPerTTL; client.Pause(ctx, context.Background(), wait) == nil; {
		limited, cancel := context.WithTimeout(ctx, max(l.ttl/renewalsPerTTL, minTryTime))
		sent, err := l.swap(limited)
		cancel()
		switch {
		case err == nil:
			l.mu.Lock()
			l.until = sent.Add(l.ttl)
			close(l.renewed)
			l.renewed = make(chan struct{})
			l.mu.Unlock()
			wait = l.ttl / renewalsPerTTL
		case errors.Is(err, events.ErrLeaseLost):
			l.end(err)
			return
		default:
			wait = min(l.ttl/watchesPerTTL, maxWatch)
		}
	}
}

// swap replaces the record with itself and returns the time before it was sent.
// It returns ErrLeaseLost if the present record is that of another owner.
func (l *Lease) swap(ctx context.Context) (time.Time, error) {
	sent := time.Now()
	revision, err := l.register.Swap(ctx, l.revision, l.record)
	if err == nil {
		l.revision = revision
		return sent, nil
	}
	if !errors.Is(err, ErrChanged) {
		return sent, err
	}
	record, revision, loadErr := l.register.Load(ctx)
	switch {
	case loadErr != nil:
		return sent, loadErr
	case record.Session == l.record.Session:
		// A renewal was stored without an answer, or the loaded record is old.
		// The next try tells.
		l.revision = max(revision, l.revision)
		return sent, err
	case revision < l.revision:
		return sent, err // old record
	}
	return sent, events.ErrLeaseLost
}
