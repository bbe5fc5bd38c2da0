package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"codea1/consumers/dashboard"
	"codea1/events"
	"codea1/events/connect"
	"codea1/events/machine"
	"codea1/events/natsbus"
	"codea1/events/process"
	"codea1/events/rundir"
	"codea1/events/services"
	"codea1/replay/eventlog"
)

// DashboardCommand is `codea1 dashboard`: the page of a run in progress or of a
// finished one.
type DashboardCommand struct {
	Shown     string          `arg:"" optional:"" name:"run" help:"Directory of a run, or name of a run in --runs-dir or on --bus."`
	RunName   string          `name:"run" help:"The same as a flag." placeholder:"RUN"`
	RunsDir   string          `help:"Directory of the run directories, whose other runs the page can lay over this one." default:"runs" placeholder:"DIR"`
	Bus       connect.Flags   `embed:"" group:"Message bus"`
	Dashboard dashboard.Flags `embed:""`
}

// Validate takes the run from the argument or from the flag. Kong calls it.
func (d *DashboardCommand) Validate() error {
	if d.Shown != "" && d.RunName != "" {
		return fmt.Errorf("%s and --run %s: name one run", d.Shown, d.RunName)
	}
	if d.RunName = cmp.Or(d.RunName, d.Shown); d.RunName == "" {
		return errors.New("name a run: codea1 dashboard RUN")
	}
	return nil
}

// Run shows the run until ctx ends.
func (d *DashboardCommand) Run(ctx context.Context, flags *kong.Context, logger *slog.Logger) error {
	shown, err := d.open(ctx, logger)
	if err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	views := dashboard.NewFollower()
	report := ""
	if shown.dir != "" {
		report = rundir.Report(shown.dir)
	}
	views.SetPlace(machine.Describe(), report)
	page, err := dashboard.Listen(ctx, d.Dashboard.Address, views, otherRuns{d.RunsDir}, process.NewMetrics())
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
		g.Go(func(ctx context.Context) error { return shown.takeLog(ctx, views, logger) })
	}
	<-g.Done()
	return errors.Join(stop(), shown.close())
}

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
func (d *DashboardCommand) open(ctx context.Context, logger *slog.Logger) (*shownRun, error) {
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
	if begun, err := openHosted(dir); err == nil && begun != nil && begun.Bus.URL != connect.Embedded {
		onBus, err := openShown(ctx, &begun.Bus, s, logger)
		if err == nil || ctx.Err() != nil {
			return onBus, err
		}
		logger.Warn("the bus of the run cannot be reached; its log is shown", "error", err)
	}
	log, err := eventlog.Open(rundir.Log(dir), eventlog.Options{ReadOnly: true, Logger: logger})
	if err != nil {
		return nil, err
	}
	s.bus, s.closers = eventlog.LogBus{Log: log}, append(s.closers, log.Close)
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
func (s *shownRun) takeLog(ctx context.Context, views *dashboard.Follower, logger *slog.Logger) error {
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
	log, err := eventlog.Open(rundir.Log(s.dir), eventlog.Options{ReadOnly: true, Logger: logger})
	if err != nil {
		logger.Warn("the log of the run is not shown", "error", err)
		return nil
	}
	again := dashboard.NewFollower()
	err = again.Follow(ctx, eventlog.LogBus{Log: log}, s.run, events.Start)
	if err == nil && ctx.Err() == nil {
		views.Replace(again)
	} else if err != nil {
		logger.Warn("the log of the run is not shown", "error", err)
	}
	<-ctx.Done()
	return log.Close()
}

// otherRuns implements dashboard.OtherRuns with the logs in a directory of runs.
type otherRuns struct{ runsDir string }

// Runs implements dashboard.OtherRuns.
func (o otherRuns) Runs() ([]string, error) {
	entries, err := os.ReadDir(o.runsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	began := map[string]time.Time{}
	var names []string
	for _, e := range entries {
		name := e.Name()
		info, err := os.Stat(rundir.Config(filepath.Join(o.runsDir, name)))
		if err != nil || !eventlog.Exists(rundir.Log(filepath.Join(o.runsDir, name))) || events.ValidName(name) != nil {
			continue
		}
		names, began[name] = append(names, name), info.ModTime()
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(began[b].Compare(began[a]), strings.Compare(a, b)) })
	return names, nil
}

// Open implements dashboard.OtherRuns.
func (o otherRuns) Open(_ context.Context, run string) (dashboard.Bus, func() error, error) {
	log, err := eventlog.Open(rundir.Log(filepath.Join(o.runsDir, run)), eventlog.Options{ReadOnly: true})
	if err != nil {
		return nil, nil, err
	}
	return eventlog.LogBus{Log: log}, log.Close, nil
}
