package gpuworker

import (
	"context"

	"codea1/events"
)

// Leased returns a learner that saves only while a lease lasts. A trainer that
// was suspended for a long time must not write checkpoints among those of the
// trainer that took over.
func Leased(learner Learner, lease events.Lease) Learner { return &leased{learner, lease} }

type leased struct {
	Learner
	lease events.Lease
}

// Save implements Learner.
func (l *leased) Save(ctx context.Context, dir string) error {
	if err := l.lease.Confirm(ctx); err != nil {
		return err
	}
	return l.Learner.Save(ctx, dir)
}
