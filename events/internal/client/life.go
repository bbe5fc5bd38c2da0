package client

import (
	"context"
	"errors"
	"io"
	"sync"

	"codea1/events"
)

// Life is the lifetime of a bus. It closes the consumers, readers and leases of
// the bus.
type Life struct {
	ctx    context.Context // ends when Close begins
	cancel context.CancelFunc

	mu   sync.Mutex
	open map[io.Closer]struct{}
}

// NewLife begins a Life.
func NewLife() *Life {
	l := &Life{open: make(map[io.Closer]struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Context returns a context that ends when Close begins.
func (l *Life) Context() context.Context { return l.ctx }

// Track makes Close close c, until Forget. After Close has begun it returns
// events.ErrClosed.
func (l *Life) Track(c io.Closer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return events.ErrClosed
	}
	l.open[c] = struct{}{}
	return nil
}

// Forget undoes Track. c calls it when it is closed.
func (l *Life) Forget(c io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// Close closes everything tracked. Only the first call returns true.
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
