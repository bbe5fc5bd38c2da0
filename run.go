package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/term"

	"codea1/consumers/dashboard"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
	"codea1/events/connect"
	"codea1/events/natsbus"
)

// stopTimeout bounds how long a stopped run takes to record its end.
const stopTimeout = 30 * time.Second

// trainingRun is a run with all its stages in this process.
type trainingRun struct {
	*recording
	pool   *sandbox.Pool
	views  *dashboard.Follower
	page   *dashboard.Server // nil without a live page
	server *natsbus.Server   // nil with an external bus
}

// openTraining opens what a training needs, the parts that can be wrong first,
// so that a mistake leaves nothing behind but the run's directory.
func openTraining(ctx context.Context, flags *TrainCommand, dir string, logger *slog.Logger) (t *trainingRun, err error) {
	t = &trainingRun{views: dashboard.NewFollower(), recording: newRecording(&station{
		run: filepath.Base(dir), dir: dir, settings: &flags.RunSettings, instance: "0", alone: flags.Bus.URL == connect.Embedded,
		leaseTTL: defaultLeaseTTL, metrics: prometheus.NewRegistry(), logger: logger,
	})}
	t.budget = flags.Budget
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if _, err := flags.Reward.Recipe(); err != nil {
		return t, err
	}
	if t.pool, err = t.openPool(ctx); err != nil {
		return t, err
	}
	if err := t.open(ctx); err != nil {
		return t, err
	}
	if err := t.openPage(ctx, &flags.Dashboard); err != nil {
		return t, err
	}
	if t.alone {
		t.server, t.bus, err = flags.Bus.OpenEmbedded(ctx, t.run, natsPath(dir), flags.Port, logger)
		if err != nil {
			return t, err
		}
		t.owns(func() error { t.server.Shutdown(); return nil })
	} else if t.bus, err = flags.Bus.Open(ctx, "codea1-"+t.run, logger.With("part", "bus")); err != nil {
		return t, err
	}
	t.owns(t.bus.Close)
	return t, nil
}

// openPage takes the address of the live page, unless there shall be none.
func (t *trainingRun) openPage(ctx context.Context, flags *dashboard.Flags) (err error) {
	if flags.Off {
		return nil
	}
	t.page, err = listenPage(ctx, flags.Address, t.views, t.station)
	return err
}

// listenPage takes an address for the page of a run.
func listenPage(ctx context.Context, address string, views *dashboard.Follower, s *station) (*dashboard.Server, error) {
	page, err := dashboard.Listen(ctx, dashboard.ServerConfig{Address: address, Follower: views, Gatherer: s.metrics})
	if err != nil {
		return nil, err
	}
	s.owns(func() error {
		if err := page.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil // Serve has given the address back
	})
	return page, nil
}

// train runs all stages until the planned steps are done or ctx ends, and
// prints what came of it. config is the configuration that run.started states.
//
// Three circles stop one after the other: the workers, which make events; the
// recorder, which must still log what they made last; the views, which show it.
func (t *trainingRun) train(ctx context.Context, config string, out, progress io.Writer) error {
	views, stopViews := newCircle(context.WithoutCancel(ctx))
	defer func() { _ = stopViews() }() // for returns that have an error already
	t.startViews(views, progress)

	recording, stopRecording := newCircle(context.WithoutCancel(ctx))
	defer func() { _ = stopRecording() }()
	if _, err := t.lease(ctx, recording, events.StageRecorder); err != nil {
		return err
	}
	if err := t.begin(ctx, recording, config); err != nil {
		return err
	}

	working, stopWorking := newCircle(ctx)
	defer func() { _ = stopWorking() }()
	if err := t.startWorkers(ctx, working); err != nil && !isStop(ctx, err) {
		return err
	}
	select {
	case <-t.finished:
	case <-working.Done():
	case <-recording.Done():
	}
	reason := t.reason()
	err := stopWorking()
	if recording.Err() != nil {
		return errors.Join(err, stopRecording())
	}
	// The end is recorded even when the user is in a hurry or a worker failed.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err = errors.Join(err, t.finish(closing, recording, reason), stopRecording())
	if err == nil {
		err = t.views.Wait(closing, func(s *dashboard.State) bool { return s.Finished != "" && s.Attempt == t.attempt })
	}
	if err := errors.Join(err, stopViews()); err != nil {
		return err
	}
	return t.conclude(out, reason)
}

// startViews starts what shows the run and says where it can be seen.
func (t *trainingRun) startViews(c *circle, progress io.Writer) {
	t.views.SetBudget(t.budget)
	c.Go(func(ctx context.Context) error { return t.views.Follow(ctx, t.bus, t.run, events.Start) })
	if t.page != nil {
		c.Go(t.page.Serve)
	}
	fmt.Fprintf(progress, "run   %s\n", t.dir)
	if t.server != nil {
		fmt.Fprintf(progress, "tap   nats sub -s %s 'codea1.>'\n", t.server.ClientURL())
	}
	if t.page != nil {
		fmt.Fprintf(progress, "page  %s\n", t.page.URL())
	}
	c.Go(dashboard.NewBar(t.views, dashboard.BarConfig{Out: progress, Terminal: isTerminal(progress)}).Run)
}

// startWorkers starts every stage that makes events.
func (t *trainingRun) startWorkers(ctx context.Context, c *circle) error {
	if t.server != nil {
		c.Go(t.server.Wait)
	}
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		if err := errors.Join(t.startRollout(c, role), t.startTrainer(ctx, c, role)); err != nil {
			return err
		}
	}
	return errors.Join(t.startExecution(c, t.pool), t.startRewards(c), t.startEvaluation(c))
}

// isStop reports whether err says no more than that ctx was cancelled.
func isStop(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// conclude prints the results and writes the report.
func (t *trainingRun) conclude(out io.Writer, reason string) (err error) {
	var table string
	t.views.View(func(s *dashboard.State) {
		table = dashboard.Table(s, t.dir)
		err = dashboard.SaveReport(reportPath(t.dir), s)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%sReport                      %s\n", table, reportPath(t.dir))
	if reason == events.RunStopped {
		fmt.Fprintf(out, "\nGo on with:  codea1 train --resume %s\n", t.again())
	}
	return nil
}

// again returns what --resume takes to find the run from here.
func (t *trainingRun) again() string {
	if dir, err := findRun(defaultRunsDir, t.run); err == nil && dir == t.dir {
		return t.run
	}
	return t.dir
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
