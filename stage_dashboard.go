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
	"codea1/events/machine"
	"codea1/events/process"
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
	r, err := d.New(d.RunsDir, logger)
	if err != nil {
		return err
	}
	if r.Bus, err = d.Join(ctx, &d.Bus, flags.Selected().Name, logger); err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	r.OnClose(r.Bus.Close)
	defer func() { err = errors.Join(err, r.Close()) }()
	views := dashboard.NewFollower()
	views.SetPlace(machine.Describe(), rundir.Report(r.Dir))
	page, err := listenPage(ctx, d.Dashboard.Address, views, d.RunsDir, r)
	if err != nil {
		return err
	}
	g, stop := services.NewGroup(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	if err := d.OpenProbe(ctx, r, g, dashboard.Metrics(views)); err != nil {
		return err
	}
	fmt.Fprintf(flags.Stderr, "page  %s\n", page.URL())
	r.Serve(g, events.StageDashboard, func(ctx context.Context) error {
		if err := attempt.AwaitRun(ctx, r.Bus, d.RunName, logger); err != nil {
			return err
		}
		return views.Follow(ctx, r.Bus, d.RunName, events.Start)
	})
	g.Go(page.Serve)
	g.Go(func(ctx context.Context) error { return writeReports(ctx, out, r, views) })
	<-g.Done()
	return nil
}

// writeReports prints the results, and writes the report into the run directory if
// this machine has it, each time that an attempt completes the run.
func writeReports(ctx context.Context, out io.Writer, r *process.Process, views *dashboard.Follower) error {
	for attempt := 0; ; {
		err := views.Wait(ctx, func(now *dashboard.State) bool { return now.Finished == events.RunCompleted && now.Attempt > attempt })
		if err != nil {
			return err
		}
		views.View(func(now *dashboard.State) {
			attempt = now.Attempt
			if _, err = fmt.Fprintf(out, "\n%s", dashboard.Table(now, r.Dir)); err != nil {
				return
			}
			if _, missing := os.Stat(r.Dir); missing == nil {
				err = dashboard.SaveReport(rundir.Report(r.Dir), now)
			}
		})
		if err != nil {
			r.Logger.Warn("report not written", "error", err)
		}
	}
}

// listenPage listens at the address of the page of a run. The page can lay other runs
// of a directory over it.
func listenPage(ctx context.Context, address string, views *dashboard.Follower, runsDir string, r *process.Process) (*dashboard.Server, error) {
	page, err := dashboard.Listen(ctx, address, views, otherRuns{runsDir}, r.Metrics)
	if err != nil {
		return nil, err
	}
	r.OnClose(func() error {
		if err := page.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil // Serve has closed the listener
	})
	return page, nil
}
