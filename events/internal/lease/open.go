package lease

import (
	"context"

	"codea1/events"
	"codea1/events/internal/client"
)

// Open takes the lease of a register with the semantics of events.Leases. The
// Life of the bus closes it, and ends the wait for it.
func Open(ctx context.Context, life *client.Life, register Register, config events.LeaseConfig) (events.Lease, error) {
	if err := client.Ended(ctx, life.Context()); err != nil {
		return nil, err
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := client.Both(ctx, life.Context())
	defer cancel()
	taken, err := Take(ctx, register, config)
	if err != nil {
		if life.Context().Err() != nil {
			return nil, events.ErrClosed
		}
		return nil, err
	}
	l := &opened{taken, life}
	if err := life.Track(l); err != nil {
		_ = taken.Close()
		return nil, err
	}
	return l, nil
}

type opened struct {
	*Lease
	life *client.Life
}

// Close implements events.Lease.
func (l *opened) Close() error {
	defer l.life.Forget(l)
	return l.Lease.Close()
}
