package natsbus

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"codea1/events"
	"codea1/events/internal/client"
)

// link is the state of the connection. It logs the begin and the end of an
// outage, and not each try to reconnect.
type link struct {
	logger *slog.Logger

	mu     sync.Mutex
	up     chan struct{}   // closed while connected
	ctx    context.Context // ends with the connection; valid while connected
	cancel context.CancelFunc
	since  time.Time // begin of the outage
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
	l.logger.Warn("nats: reconnected", "server", server, "outage", time.Since(l.since).Round(time.Millisecond))
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

// wait blocks until there is a connection, and returns a context that ends with
// it. It returns ctx.Err() if ctx ends first and ErrClosed if owner does.
func (l *link) wait(ctx, owner context.Context) (context.Context, error) {
	for {
		l.mu.Lock()
		up, live := l.up, l.ctx
		l.mu.Unlock()
		select {
		case <-up:
			if err := client.Ended(ctx, owner); err != nil {
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

// alive returns a context that ends with the present connection, or that has
// ended if there is none.
func (l *link) alive() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx
}
