package client

import (
	"context"
	"errors"
	"io"
	"sync"

	"codea1/events"
)

// Life is how long a bus lives, and what has been opened on it and is to be
// closed with it.
type Life struct {
	ctx    context.Context // ends when closing begins
	cancel context.CancelFunc

	mu   sync.Mutex
	open map[io.Closer]struct{}
}

// NewLife begins a life.
func NewLife() *Life {
	l := &Life{open: make(map[io.Closer]struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Context ends when closing begins.
func (l *Life) Context() context.Context { return l.ctx }

// Track remembers what is to be closed, until Forget; it fails with
// events.ErrClosed once closing has begun.
func (l *Life) Track(c io.Closer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return events.ErrClosed
	}
	l.open[c] = struct{}{}
	return nil
}

// Forget is called by what has been closed.
func (l *Life) Forget(c io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// Close closes everything tracked. Only the first call reports true.
func (l *Life) Close() (first bool, err error) {
	l.mu.Lock()
	if l.ctx.Err() != nil {
		l.mu.Unlock()
		return false, nil
	}
	l.cancel()
	open := make([]io.Closer, 0, len(l.open))
	for c := range l.open {
		open = append(open, c)
	}
	l.mu.Unlock()
	var errs []error
	for _, c := range open {
		errs = append(errs, c.Close())
	}
	return true, errors.Join(errs...)
}
