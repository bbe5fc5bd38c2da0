package main

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
)

// circle is a set of services that stop together: when one fails, when its
// context ends, or when it is asked to.
type circle struct {
	group *errgroup.Group
	ctx   context.Context
}

// newCircle returns an empty circle and the function that stops it, waits, and
// returns the first failure. Stopping twice is harmless.
func newCircle(parent context.Context) (c *circle, stop func() error) {
	ctx, cancel := context.WithCancel(parent)
	group, ctx := errgroup.WithContext(ctx)
	return &circle{group: group, ctx: ctx}, func() error {
		cancel()
		return group.Wait()
	}
}

// Go runs a service until the circle stops. That it was stopped is no failure.
func (c *circle) Go(run func(context.Context) error) {
	c.group.Go(func() error {
		err := run(c.ctx)
		if err != nil && c.ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	})
}

// Done is closed when the circle stops or one of its services has failed.
func (c *circle) Done() <-chan struct{} { return c.ctx.Done() }

// Err is not nil once Done is closed.
func (c *circle) Err() error { return c.ctx.Err() }
