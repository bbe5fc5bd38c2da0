package client

import (
	"context"
	"time"

	"codea1/events"
)

// Ended returns the error of a call under ctx on an object that lives as long
// as owner: events.ErrClosed, ctx.Err() or nil.
func Ended(ctx, owner context.Context) error {
	if owner.Err() != nil {
		return events.ErrClosed
	}
	return ctx.Err()
}

// Pause waits between two tries. It returns ctx.Err() if ctx ends first, and
// events.ErrClosed if owner does.
func Pause(ctx, owner context.Context, d time.Duration) error {
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

// Both returns a context under ctx that also ends with other.
func Both(ctx, other context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(other, cancel)
	return both, func() { stop(); cancel() }
}
