package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"codea1/events"
)

// maxSilence is the number of LagEvery intervals without an answer of the bus
// after which a stage is unhealthy. One lost answer is not an outage.
const maxSilence = 3

// contact records when the bus last answered, and the lag.
type contact struct {
	mu      sync.Mutex
	running bool
	heard   time.Time // time of the bus's last answer
	err     error     // of the last request; nil after an answer
	lag     events.Lag
	lagAt   time.Time // zero before the first answer
	busy    float64   // share of busy slots in the last interval
}

func (c *contact) start(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running, c.heard, c.err = true, now, nil
}

func (c *contact) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
}

// note records the result of a request to the bus.
func (c *contact) note(err error, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	if err == nil {
		c.heard = now
	}
}

func (c *contact) noteLag(lag events.Lag, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lag, c.lagAt = lag, now
}

// pending returns the last known lag, or 0.
func (c *contact) pending() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lag.Pending
}

func (c *contact) noteBusy(share float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = share
}

func (c *contact) health(now time.Time, limit time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return ErrNotRunning
	}
	if silence := now.Sub(c.heard); silence > limit {
		return &SilenceError{For: silence, Err: c.err}
	}
	return nil
}

// Health returns nil if the loop runs and the bus has answered within the last
// three LagEvery; otherwise ErrNotRunning or a *SilenceError. Use it for
// readiness, not for restarts: a restart does not end an outage of the bus.
func (s *Stage) Health(context.Context) error {
	if err := s.contact.health(time.Now(), maxSilence*s.config.LagEvery); err != nil {
		return fmt.Errorf("stage %s: %w", s.config.source(), err)
	}
	return nil
}

// asked records the result of a request to the bus. If ctx has ended, the
// result says nothing about the bus.
func (s *Stage) asked(ctx context.Context, what operation, err error) {
	switch {
	case err == nil && what == opAnswer:
		// An unconfirmed answer to a delivery proves nothing about the bus.
	case err == nil || errors.Is(err, events.ErrLineage):
		s.contact.note(nil, time.Now()) // a refusal is an answer
	case ctx.Err() == nil:
		s.metrics.busErrors.WithLabelValues(string(what)).Inc()
		s.contact.note(err, time.Now())
	}
}

// watch updates the lag and the busy share until ctx ends, with one request at a
// time.
func (s *Stage) watch(ctx context.Context) { s.measure(ctx, func() { s.askLag(ctx) }) }

// measure calls askLag and updates the busy share, every LagEvery until ctx ends.
func (s *Stage) measure(ctx context.Context, askLag func()) {
	tick := time.NewTicker(s.config.LagEvery)
	defer tick.Stop()
	share := busyShare{slots: s.config.Concurrency, at: s.config.Now(), total: s.metrics.busy.read(s.config.Now())}
	for {
		askLag()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := s.config.Now()
		s.contact.noteBusy(share.next(now, s.metrics.busy.read(now)))
	}
}

func (s *Stage) askLag(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, s.config.LagEvery)
	defer cancel()
	lag, err := s.config.Bus.Lag(limited, s.config.Run, s.config.Name)
	s.asked(ctx, opLag, err)
	if err == nil {
		s.contact.noteLag(lag, time.Now())
	}
}
