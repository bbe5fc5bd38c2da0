package natsbus

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"codea1/events"
)

// link follows the state of the connection. It logs an outage once when it
// begins and once when it ends, however many attempts lie between.
type link struct {
	logger *slog.Logger

	mu     sync.Mutex
	up     chan struct{}   // closed while connected
	ctx    context.Context // ends with the connection; valid while connected
	cancel context.CancelFunc
	since  time.Time // when the outage began
	closed bool
}

func newLink(logger *slog.Logger) *link {
	l := &link{logger: logger, up: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	close(l.up)
	return l
}

func (l *link) disconnected(server string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || !l.since.IsZero() {
		return
	}
	l.since = time.Now()
	l.up = make(chan struct{})
	l.cancel()
	l.logger.Warn("nats: connection lost, reconnecting", "server", server, "error", err)
}

func (l *link) reconnected(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.since.IsZero() {
		return
	}
	l.logger.Info("nats: connected again", "server", server, "outage", time.Since(l.since).Round(time.Millisecond))
	l.since = time.Time{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	close(l.up)
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.cancel()
}

// wait blocks until there is a connection and returns a context that ends
// with it. It returns ctx.Err() when ctx ends first and ErrClosed when owner
// does.
func (l *link) wait(ctx, owner context.Context) (context.Context, error) {
	for {
		l.mu.Lock()
		up, live := l.up, l.ctx
		l.mu.Unlock()
		select {
		case <-up:
			if err := ended(ctx, owner); err != nil {
				return nil, err
			}
			return live, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-owner.Done():
			return nil, events.ErrClosed
		}
	}
}

// alive returns a context that ends with the present connection. It has ended
// already when there is none.
func (l *link) alive() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx
}

// ended returns the error of a call under ctx on something that lives as long
// as owner, or nil.
func ended(ctx, owner context.Context) error {
	if owner.Err() != nil {
		return events.ErrClosed
	}
	return ctx.Err()
}

// pause waits a moment between two attempts.
func pause(ctx, owner context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-owner.Done():
		return events.ErrClosed
	}
}

// both returns a context under owner that also ends with live.
func both(owner, live context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(owner)
	stop := context.AfterFunc(live, cancel)
	return ctx, func() { stop(); cancel() }
}
