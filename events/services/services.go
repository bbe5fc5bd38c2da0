// Package services runs functions that stop together.
package services

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

// Group is a set of services. They stop when one of them fails, when the parent
// context ends, or when the group is stopped.
type Group struct {
	group *errgroup.Group
	ctx   context.Context
}

// NewGroup returns an empty group and the function that stops it, waits for its
// services, and returns the first error. A second stop does nothing.
func NewGroup(parent context.Context) (g *Group, stop func() error) {
	ctx, cancel := context.WithCancel(parent)
	group, ctx := errgroup.WithContext(ctx)
	return &Group{group: group, ctx: ctx}, func() error {
		cancel()
		return group.Wait()
	}
}

// Go runs a service until the group stops. A service that returns because it
// was stopped has not failed.
func (g *Group) Go(run func(context.Context) error) {
	g.group.Go(func() error { return UnlessCanceled(g.ctx, run(g.ctx)) })
}

// Context ends when the group stops.
func (g *Group) Context() context.Context { return g.ctx }

// Done is closed when the group stops or one of its services has failed.
func (g *Group) Done() <-chan struct{} { return g.ctx.Done() }

// Err is not nil once Done is closed.
func (g *Group) Err() error { return g.ctx.Err() }

// Canceled reports whether err says only that ctx was canceled.
func Canceled(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// UnlessCanceled returns err, or nil when it says only that ctx was canceled.
func UnlessCanceled(ctx context.Context, err error) error {
	if Canceled(ctx, err) {
		return nil
	}
	return err
}

// Outlive returns a context that ends grace after ctx does.
func Outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(grace):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() { stop(); cancel() }
}
