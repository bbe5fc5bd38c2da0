package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/alecthomas/kong"

	"codea1/consumers/dashboard"
	"codea1/events"
	"codea1/events/connect"
	"codea1/events/machine"
	"codea1/events/process"
	"codea1/events/rundir"
	"codea1/events/services"
)

// Command is `codea1 dashboard`: the page of a run in progress or of a
// finished one.
type Command struct {
	Shown     string          `arg:"" optional:"" name:"run" help:"Directory of a run, or name of a run in --runs-dir or on --bus."`
	RunName   string          `name:"run" help:"The same as a flag." placeholder:"RUN"`
	RunsDir   string          `help:"Directory of the run directories, whose other runs the page can lay over this one." default:"runs" placeholder:"DIR"`
	Bus       connect.Flags   `embed:"" group:"Message bus"`
	Dashboard dashboard.Flags `embed:""`
}

// Validate takes the run from the argument or from the flag. Kong calls it.
func (d *Command) Validate() error {
	if d.Shown != "" && d.RunName != "" {
		return fmt.Errorf("%s and --run %s: name one run", d.Shown, d.RunName)
	}
	if d.RunName = cmp.Or(d.RunName, d.Shown); d.RunName == "" {
		return errors.New("name a run: codea1 dashboard RUN")
	}
	return nil
}

// Run shows the run until ctx ends.
func (d *Command) Run(ctx context.Context, flags *kong.Context, host Host, logger *slog.Logger) error {
	shown, err := d.open(ctx, host, logger)
	if err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	views := dashboard.NewFollower()
	report := ""
	if shown.dir != "" {
		report = rundir.Report(shown.dir)
	}
	views.SetPlace(machine.Describe(), report)
	page, err := dashboard.Listen(ctx, d.Dashboard.Address, views, OtherRuns{host, d.RunsDir}, process.NewMetrics())
	if err != nil {
		return errors.Join(err, shown.close())
	}
	fmt.Fprintf(flags.Stderr, "page  %s\n", page.URL())
	g, stop := services.NewGroup(ctx)
	g.Go(page.Serve)
	g.Go(func(ctx context.Context) error {
		if err := views.Follow(ctx, shown.bus, shown.run, events.Start); err != nil {
			return err
		}
		<-ctx.Done() // a log has an end, and its page stays
		return nil
	})
	if shown.embedded {
		g.Go(func(ctx context.Context) error { return shown.takeLog(ctx, host, views, logger) })
	}
	<-g.Done()
	return errors.Join(stop(), shown.close())
}
