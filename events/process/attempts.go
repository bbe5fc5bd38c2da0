package process

import (
	"context"
	"errors"
	"log/slog"

	"codea1/events"
	"codea1/events/attempt"
	"codea1/events/connect"
	"codea1/events/services"
)

// Attempt is the newest attempt at a run, for a process that works on it.
type Attempt struct {
	Started *events.RunStarted
	Bus     events.Broker

	follower *attempt.Follower
}

// Wait waits until the run is completed (nil), is resumed with another configuration
// (attempt.ErrConfigurationChanged), or ctx ends (nil).
func (a *Attempt) Wait(ctx context.Context) error {
	return services.UnlessCanceled(ctx, a.follower.Wait(ctx, a.Started))
}

// Work joins the bus and calls work with each attempt at the run until the run is
// completed or ctx ends. When the run is resumed with another configuration, work
// returns attempt.ErrConfigurationChanged and is called again.
func (f *Flags) Work(ctx context.Context, on *connect.Flags, stage string, logger *slog.Logger, work func(context.Context, *Attempt) error) (err error) {
	bus, err := f.Join(ctx, on, stage, logger)
	if err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	if err := attempt.AwaitRun(ctx, bus, f.RunName, logger); err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	g, stop := services.NewGroup(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	attempts := attempt.NewFollower(f.RunName)
	g.Go(func(ctx context.Context) error { return attempts.Run(ctx, bus) })
	for {
		started, completed, err := attempts.Present(g.Context())
		if err != nil {
			return services.UnlessCanceled(g.Context(), err)
		}
		if completed {
			logger.Info("the run is completed", "run", f.RunName)
			return nil
		}
		if err := work(g.Context(), &Attempt{Started: started, Bus: bus, follower: attempts}); !errors.Is(err, attempt.ErrConfigurationChanged) {
			return err
		}
	}
}
