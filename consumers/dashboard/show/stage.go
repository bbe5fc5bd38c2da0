package show

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

// Stage is the stage dashboard. It shows a run on its bus.
type Stage struct {
	process.StageFlags
	Dashboard dashboard.Flags `embed:""`
}

// Run shows the run until ctx ends.
func (d *Stage) Run(ctx context.Context, flags *kong.Context, out io.Writer, host Host, logger *slog.Logger) (err error) {
	p, err := d.New(d.RunsDir, logger)
	if err != nil {
		return err
	}
	if p.Bus, err = d.Join(ctx, &d.Bus, flags.Selected().Name, logger); err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	p.OnClose(p.Bus.Close)
	defer func() { err = errors.Join(err, p.Close()) }()
	views := dashboard.NewFollower()
	views.SetPlace(machine.Describe(), rundir.Report(p.Dir))
	page, err := Listen(ctx, d.Dashboard.Address, views, OtherRuns{host, d.RunsDir}, p)
	if err != nil {
		return err
	}
	g, stop := services.NewGroup(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	if err := d.OpenProbe(ctx, p, g, dashboard.Metrics(views)); err != nil {
		return err
	}
	fmt.Fprintf(flags.Stderr, "page  %s\n", page.URL())
	p.Serve(g, events.StageDashboard, func(ctx context.Context) error {
		if err := attempt.AwaitRun(ctx, p.Bus, d.RunName, logger); err != nil {
			return err
		}
		return views.Follow(ctx, p.Bus, d.RunName, events.Start)
	})
	g.Go(page.Serve)
	g.Go(func(ctx context.Context) error { return writeReports(ctx, out, p, views) })
	<-g.Done()
	return nil
}

// writeReports prints the results, and writes the report into the run directory if
// this machine has it, each time that an attempt completes the run.
func writeReports(ctx context.Context, out io.Writer, p *process.Process, views *dashboard.Follower) error {
	for attempt := 0; ; {
		err := views.Wait(ctx, func(now *dashboard.State) bool { return now.Finished == events.RunCompleted && now.Attempt > attempt })
		if err != nil {
			return err
		}
		views.View(func(now *dashboard.State) {
			attempt = now.Attempt
			if _, err = fmt.Fprintf(out, "\n%s", dashboard.Table(now, p.Dir)); err != nil {
				return
			}
			if _, missing := os.Stat(p.Dir); missing == nil {
				err = dashboard.SaveReport(rundir.Report(p.Dir), now)
			}
		})
		if err != nil {
			p.Logger.Warn("report not written", "error", err)
		}
	}
}

// Listen listens at the address of the page of a run until the process closes.
func Listen(ctx context.Context, address string, views *dashboard.Follower, others OtherRuns, p *process.Process) (*dashboard.Server, error) {
	page, err := dashboard.Listen(ctx, address, views, others, p.Metrics)
	if err != nil {
		return nil, err
	}
	p.OnClose(func() error {
		if err := page.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil // Serve has closed the listener
	})
	return page, nil
}
