package main

import (
	"context"
	"fmt"
	"time"

	"codea1/events"
	"codea1/gpuworker"
)

// defaultLeaseTTL is how long a part of a run whose owner has died stays without
// one.
const defaultLeaseTTL = 10 * time.Second

// lease makes this process the owner of a part of the run until the station
// closes. The circle fails when another process has become the owner.
func (s *station) lease(ctx context.Context, c *circle, name string) (events.Lease, error) {
	if s.alone {
		return ownLease{}, nil
	}
	held, err := s.bus.Lease(ctx, events.LeaseConfig{Run: s.run, Name: name, Owner: s.instance, TTL: s.leaseTTL, Wait: s.patient})
	if err != nil {
		return nil, err
	}
	s.owns(held.Close)
	c.Go(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-held.Lost():
			return fmt.Errorf("%s of run %s: %w", name, s.run, events.ErrLeaseLost)
		}
	})
	return held, nil
}

// ownLease is the lease of a process that nobody can compete with.
type ownLease struct{}

func (ownLease) Confirm(context.Context) error { return nil }
func (ownLease) Lost() <-chan struct{}         { return nil }
func (ownLease) Close() error                  { return nil }

// leasedLearner saves only while the lease lasts: a trainer that was stopped
// for long must not write among the versions of the one that took over.
type leasedLearner struct {
	gpuworker.Learner
	lease events.Lease
}

// Save implements gpuworker.Learner.
func (l *leasedLearner) Save(ctx context.Context, dir string) error {
	if err := l.lease.Confirm(ctx); err != nil {
		return err
	}
	return l.Learner.Save(ctx, dir)
}
