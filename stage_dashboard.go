package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"github.com/alecthomas/kong"

	"codea1/consumers/dashboard"
	"codea1/events"
	"codea1/events/attempt"
	"codea1/events/rundir"
	"codea1/events/services"
)

// DashboardStage shows a run.
type DashboardStage struct {
	WorkerStage
	Dashboard dashboard.Flags `embed:""`
}

// Run shows the run until ctx ends.
func (d *DashboardStage) Run(ctx context.Context, flags *kong.Context, out io.Writer, logger *slog.Logger) (err error) {
	r, err := d.newRunner(d.RunsDir, logger)
	if err != nil {
		return err
	}
	if r.bus, err = joinBus(ctx, &d.Bus, d.RunName, flags, logger); err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	r.onClose(r.bus.Close)
	defer func() { err = errors.Join(err, r.close()) }()
	views := dashboard.NewFollower()
	views.SetPlace(machine(), rundir.Report(r.dir))
	page, err := listenPage(ctx, d.Dashboard.Address, views, d.RunsDir, r)
	if err != nil {
		return err
	}
	g, stop := services.NewGroup(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	if err := d.openProbe(ctx, r, g, dashboard.Metrics(views)); err != nil {
		return err
	}
	fmt.Fprintf(flags.Stderr, "page  %s\n", page.URL())
	r.serve(g, events.StageDashboard, func(ctx context.Context) error {
		if err := attempt.AwaitRun(ctx, r.bus, d.RunName, logger); err != nil {
			return err
		}
		return views.Follow(ctx, r.bus, d.RunName, events.Start)
	})
	g.Go(page.Serve)
	g.Go(func(ctx context.Context) error { return writeReports(ctx, out, r, views) })
	<-g.Done()
	return nil
}

// writeReports prints the results, and writes the report into the run directory if
// this machine has it, each time that an attempt completes the run.
func writeReports(ctx context.Context, out io.Writer, r *runner, views *dashboard.Follower) error {
	for attempt := 0; ; {
		err := views.Wait(ctx, func(now *dashboard.State) bool { return now.Finished == events.RunCompleted && now.Attempt > attempt })
		if err != nil {
			return err
		}
		views.View(func(now *dashboard.State) {
			attempt = now.Attempt
			if _, err = fmt.Fprintf(out, "\n%s", dashboard.Table(now, r.dir)); err != nil {
				return
			}
			if _, missing := os.Stat(r.dir); missing == nil {
				err = dashboard.SaveReport(rundir.Report(r.dir), now)
			}
		})
		if err != nil {
			r.logger.Warn("report not written", "error", err)
		}
	}
}

// listenPage listens at the address of the page of a run. The page can lay other runs
// of a directory over it.
func listenPage(ctx context.Context, address string, views *dashboard.Follower, runsDir string, r *runner) (*dashboard.Server, error) {
	page, err := dashboard.Listen(ctx, address, views, otherRuns{runsDir}, r.metrics)
	if err != nil {
		return nil, err
	}
	r.onClose(func() error {
		if err := page.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil // Serve has closed the listener
	})
	return page, nil
}
