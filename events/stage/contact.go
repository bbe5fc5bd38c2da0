package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"codea1/events"
)

// maxSilence is how many intervals of LagEvery the bus may leave unanswered
// before a stage is unhealthy: one lost answer is no outage.
const maxSilence = 3

// contact remembers when the bus last did what it was asked for, and what it
// said about the lag.
type contact struct {
	mu      sync.Mutex
	running bool
	heard   time.Time // the bus's last sign of life
	err     error     // of the last request, nil when it was answered
	lag     events.Lag
	lagAt   time.Time // zero until the first answer
	busy    float64   // share of the slots in the last interval
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

// note records what a request to the bus came to.
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

// pending returns the lag last told, 0 before that.
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

// Health returns nil while the loop runs and the bus has answered it within
// the last three LagEvery; otherwise ErrNotRunning or a *SilenceError. An
// outage of the bus makes a stage unhealthy, and restarting it cures nothing:
// let it answer whether work should be sent here, not whether to kill.
func (s *Stage) Health(context.Context) error {
	if err := s.contact.health(time.Now(), maxSilence*s.config.LagEvery); err != nil {
		return fmt.Errorf("stage %s: %w", s.config.source(), err)
	}
	return nil
}

// asked notes what a request to the bus came to. The end of ctx says nothing
// about the bus.
func (s *Stage) asked(ctx context.Context, what operation, err error) {
	switch {
	case err == nil && what == opAnswer:
		// An answer may be written without being confirmed: nothing was heard.
	case err == nil || errors.Is(err, events.ErrLineage):
		s.contact.note(nil, time.Now()) // a refusal is a sign of life
	case ctx.Err() == nil:
		s.metrics.busErrors.WithLabelValues(string(what)).Inc()
		s.contact.note(err, time.Now())
	}
}

// watch keeps lag and busy share up to date until ctx ends: one request to the
// bus every LagEvery, and never two at a time.
func (s *Stage) watch(ctx context.Context) {
	tick := time.NewTicker(s.config.LagEvery)
	defer tick.Stop()
	share := busyShare{slots: s.config.Concurrency, at: s.config.Now(), total: s.metrics.busy.read(s.config.Now())}
	for {
		s.askLag(ctx)
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
