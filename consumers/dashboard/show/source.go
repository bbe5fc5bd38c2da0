package show

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"codea1/consumers/dashboard"
	"codea1/events"
	"codea1/events/connect"
	"codea1/events/natsbus"
	"codea1/events/rundir"
)

// shownRun is the source of the events of a page.
type shownRun struct {
	run, dir string // dir is empty for a run on another machine
	bus      dashboard.Bus
	embedded bool // the bus ends with the training
	closers  []func() error
}

func (s *shownRun) close() (err error) {
	for _, c := range slices.Backward(s.closers) {
		err = errors.Join(err, c())
	}
	return err
}

// open opens the bus of --bus, the bus of a run in progress, or the log of a finished
// run.
func (d *Command) open(ctx context.Context, host Host, logger *slog.Logger) (*shownRun, error) {
	if d.Bus.URL != connect.Embedded {
		return openShown(ctx, &d.Bus, &shownRun{run: d.RunName}, logger)
	}
	dir, err := rundir.Find(d.RunsDir, d.RunName)
	if err != nil {
		return nil, fmt.Errorf("%w; --bus names the bus of a run on another machine", err)
	}
	s := &shownRun{run: filepath.Base(dir), dir: dir}
	if running := connect.Running(ctx, dir, natsbus.PipelineUser); running != nil {
		s.embedded = true
		return openShown(ctx, running, s, logger)
	}
	if bus, err := host.Bus(dir); err == nil && bus.URL != connect.Embedded {
		onBus, err := openShown(ctx, bus, s, logger)
		if err == nil || ctx.Err() != nil {
			return onBus, err
		}
		logger.Warn("the bus of the run cannot be reached; its log is shown", "error", err)
	}
	log, closeLog, err := host.OpenLog(dir, logger)
	if err != nil {
		return nil, err
	}
	s.bus, s.closers = log, append(s.closers, closeLog)
	return s, nil
}

func openShown(ctx context.Context, flags *connect.Flags, s *shownRun, logger *slog.Logger) (*shownRun, error) {
	if err := events.ValidName(s.run); err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	if err := flags.CheckReachable(ctx); err != nil {
		return nil, err
	}
	bus, err := flags.Open(ctx, "codea1-"+s.run+"-dashboard", logger.With("part", "bus"))
	if err != nil {
		return nil, err
	}
	has, err := bus.HasRun(ctx, s.run)
	if err == nil && !has {
		err = fmt.Errorf("there is no run %s at %s", s.run, connect.PublicURL(flags.URL))
	}
	if err != nil {
		return nil, errors.Join(err, bus.Close())
	}
	s.bus, s.closers = bus, append(s.closers, bus.Close)
	return s, nil
}

// lookEvery is the time between two looks for the end of an embedded server.
const lookEvery = time.Second

// takeLog waits for the end of an embedded server whose run is finished, and shows
// the log of the run from then on. The bus cannot be read any more.
func (s *shownRun) takeLog(ctx context.Context, host Host, views *dashboard.Follower, logger *slog.Logger) error {
	if err := views.Wait(ctx, func(now *dashboard.State) bool { return now.Finished != "" }); err != nil {
		return nil //nolint:nilerr // the command ends
	}
	for connect.Running(ctx, s.dir, natsbus.PipelineUser) != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	log, closeLog, err := host.OpenLog(s.dir, logger)
	if err != nil {
		logger.Warn("the log of the run is not shown", "error", err)
		return nil
	}
	again := dashboard.NewFollower()
	err = again.Follow(ctx, log, s.run, events.Start)
	if err == nil && ctx.Err() == nil {
		views.Replace(again)
	} else if err != nil {
		logger.Warn("the log of the run is not shown", "error", err)
	}
	<-ctx.Done()
	return closeLog()
}
