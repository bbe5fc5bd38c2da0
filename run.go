package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"codea1/consumers/dashboard"
	"codea1/consumers/dashboard/show"
	"codea1/consumers/dashboard/track"
	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/connect"
	"codea1/events/machine"
	"codea1/events/natsbus"
	"codea1/events/process"
	"codea1/events/progress"
	"codea1/events/rundir"
	"codea1/events/services"
)

// stopTimeout bounds the time in which a stopped run records its end.
const stopTimeout = 30 * time.Second

// trainingRun is a run with all its stages in this process.
type trainingRun struct {
	*recording
	views    *dashboard.Follower
	page     *dashboard.Server // nil without a live page
	tracking *track.Flags
	server   *natsbus.Server // nil with an external bus
}

// openTraining opens the resources of a training. It begins with the addresses, so
// that a wrong one costs no time and leaves no run directory behind. config is the
// configuration of a new run.
func openTraining(ctx context.Context, flags *TrainCommand, config string, logger *slog.Logger) (t *trainingRun, err error) {
	t = &trainingRun{views: dashboard.NewFollower(), tracking: &flags.Tracking, recording: &recording{runner: &runner{Process: &process.Process{
		Instance: "0", Alone: flags.Bus.URL == connect.Embedded, LeaseTTL: process.DefaultLeaseTTL, Metrics: process.NewMetrics(), Logger: logger,
	}}}}
	t.configure(&flags.RunSettings)
	t.budget = flags.Budget
	defer func() {
		if err == nil {
			return
		}
		canceled := services.Canceled(ctx, err)
		err = errors.Join(err, t.Close())
		if t.Dir == "" || flags.begun != nil {
			return
		}
		// The run has not begun: the next try may use the same name.
		if canceled {
			err = errors.New("stopped before the run began; its directory is removed")
		}
		err = errors.Join(err, os.RemoveAll(t.Dir))
	}()
	if _, err := flags.Reward.Recipe(); err != nil {
		return t, err
	}
	if err := t.openPage(ctx, &flags.Dashboard); err != nil {
		return t, err
	}
	if err := t.openBus(ctx, flags); err != nil {
		return t, err
	}
	if t.Dir, err = flags.directory(config, logger); err != nil {
		return t, err
	}
	t.Run = filepath.Base(t.Dir)
	if t.Alone {
		if t.server, t.Bus, err = flags.Bus.OpenEmbedded(ctx, t.Run, rundir.NATS(t.Dir), flags.Port, logger); err != nil {
			return t, err
		}
		t.OnClose(func() error { t.server.Shutdown(); return nil })
		t.OnClose(t.Bus.Close)
	}
	if err := t.open(ctx); err != nil {
		return t, err
	}
	if err := t.openPool(ctx); err != nil {
		return t, err
	}
	if err := t.checkTruths(ctx); err != nil {
		return t, err
	}
	if err := t.checkJudges(ctx); err != nil {
		return t, err
	}
	return t, t.models.OpenShared(ctx)
}

// openBus connects to an external bus, or checks that the embedded server can listen
// on its port.
func (t *trainingRun) openBus(ctx context.Context, flags *TrainCommand) (err error) {
	if t.Alone {
		return natsbus.CheckPort(flags.Port)
	}
	if err := flags.Bus.CheckReachable(ctx); err != nil {
		return err
	}
	name := filepath.Base(cmp.Or(flags.Resume, flags.Name, "train"))
	if t.Bus, err = flags.Bus.Open(ctx, "codea1-"+name, t.Logger.With("part", "bus")); err == nil {
		t.OnClose(t.Bus.Close)
	}
	return err
}

// openPage listens at the address of the live page, unless it is switched off.
func (t *trainingRun) openPage(ctx context.Context, flags *dashboard.Flags) (err error) {
	if flags.Off {
		return nil
	}
	t.page, err = show.Listen(ctx, flags.Address, t.views, show.OtherRuns{Host: &host{t.Logger}, RunsDir: t.settings.RunsDir}, t.Process)
	return err
}

// train runs all stages until the planned steps are done or ctx ends, and prints
// the results. config is the configuration for run.started.
//
// Three groups of services stop one after the other: the workers, which make
// events; the recorder, which must still log their last events; the views, which
// show them.
func (t *trainingRun) train(ctx context.Context, config string, out, status io.Writer) error {
	views, stopViews := services.NewGroup(context.WithoutCancel(ctx))
	defer func() { _ = stopViews() }() // for returns that have an error already
	t.startViews(views, status)

	recording, stopRecording := services.NewGroup(context.WithoutCancel(ctx))
	defer func() { _ = stopRecording() }()
	if _, err := t.Lease(ctx, recording, events.StageRecorder); err != nil {
		return err
	}
	if err := t.begin(ctx, recording, config); err != nil {
		return err
	}

	awaitTracking := t.startTracking(views)
	working, stopWorking := services.NewGroup(ctx)
	defer func() { _ = stopWorking() }()
	if err := t.startWorkers(ctx, working); err != nil && !services.Canceled(ctx, err) {
		return err
	}
	select {
	case <-t.Finished():
	case <-working.Done():
	case <-recording.Done():
	}
	reason := t.Reason()
	err := stopWorking()
	if recording.Err() != nil {
		return errors.Join(err, stopRecording())
	}
	// The end is recorded even after an interrupt or a failure of a worker. An
	// outage of the bus is waited for without a limit only before them.
	ending, cancelEnding := context.WithCancel(ctx)
	defer cancelEnding()
	if err != nil {
		cancelEnding()
	}
	closing, cancel := services.Outlive(ending, stopTimeout)
	defer cancel()
	err = errors.Join(err, t.Finish(closing, recording, reason), stopRecording())
	if err == nil {
		err = t.views.Wait(closing, func(s *dashboard.State) bool { return s.Finished != "" && s.Attempt == t.Number })
		awaitTracking(closing)
	}
	if err := errors.Join(err, stopViews()); err != nil {
		return err
	}
	return t.conclude(out, reason)
}

// startViews starts the progress bar and the page, and prints their addresses.
func (t *trainingRun) startViews(g *services.Group, status io.Writer) {
	t.views.SetBudget(t.budget)
	t.views.SetPlace(machine.Describe(), rundir.Report(t.Dir))
	g.Go(func(ctx context.Context) error { return t.views.Follow(ctx, t.Bus, t.Run, events.Start) })
	if t.page != nil {
		g.Go(t.page.Serve)
	}
	fmt.Fprintf(status, "run   %s\n", t.Dir)
	if t.server != nil {
		// Every user of a machine can read a command line, but not the environment.
		fmt.Fprintf(status, "tap   NATS_URL=%s nats sub 'codea1.%s.>'\n", t.server.URL(natsbus.TapUser), t.Run)
	}
	if t.page != nil {
		fmt.Fprintf(status, "page  %s\n", t.page.URL())
	}
	g.Go(dashboard.NewBar(t.views, status, progress.IsTerminal(status)).Run)
}

// startTracking writes the figures of the run for other tools, and returns the function
// that waits until those of this attempt are written or ctx ends.
func (t *trainingRun) startTracking(g *services.Group) (await func(ctx context.Context)) {
	if t.tracking.Track == "" {
		return func(context.Context) {}
	}
	written := make(chan struct{})
	g.Go(func(ctx context.Context) error {
		defer close(written)
		t.tracking.Follow(ctx, t.Bus, t.Run, track.Dir(t.Dir), t.Number, t.Logger)
		return nil
	})
	return func(ctx context.Context) {
		select {
		case <-written:
		case <-ctx.Done():
		}
	}
}

// startWorkers starts every stage of the run but the recorder and the dashboard. A run
// without steps has no trainers.
func (t *trainingRun) startWorkers(ctx context.Context, g *services.Group) error {
	if t.server != nil {
		g.Go(t.server.Wait)
	}
	for _, s := range t.settings.stages() {
		idle := !t.settings.trains() && s.Role != "" && s.Kind == events.Projection
		if start := stages[s.Name].start; start != nil && !idle {
			if err := start(ctx, t.runner, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// conclude prints the results and writes the report.
func (t *trainingRun) conclude(out io.Writer, reason string) (err error) {
	var table string
	t.views.View(func(s *dashboard.State) {
		table = dashboard.Table(s, t.Dir)
		err = dashboard.SaveReport(rundir.Report(t.Dir), s)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%sReport                      %s\n", table, rundir.Report(t.Dir))
	if reason == events.RunStopped {
		fmt.Fprintf(out, "\nResume with:  codea1 train --resume %s\n", commandline.Word(t.again()))
	}
	return nil
}

// again returns the argument of --resume that finds the run from this directory.
func (t *trainingRun) again() string {
	if dir, err := rundir.Find(rundir.Default, t.Run); err == nil && dir == t.Dir {
		return t.Run
	}
	return t.Dir
}
