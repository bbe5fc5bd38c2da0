package fork

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
)

// RunConfig configures Run.
type RunConfig struct {
	Host      Host
	Retrainer Retrainer         // nil: a missing checkpoint is an error
	Source    *eventlog.Log     // of the origin, in its run directory
	At        uint64            // number of shared events
	Dir       string            // directory of the new run; its last element is the run's name
	Changes   map[string]string // configuration keys of the new run
	Progress  Progress
	Logger    *slog.Logger
}

// ForkedRun is the result of Run.
type ForkedRun struct {
	Forked
	Open      uint64   // deliveries left to the workers
	Retrained []string // versions that were trained again because their checkpoint was gone
}

// Run makes the directory of a run that shares the beginning of another run: log,
// bus, configuration and checkpoints. After a failure the directory does not
// exist.
func Run(ctx context.Context, config RunConfig) (ForkedRun, error) {
	var forked ForkedRun
	err := intoEmpty(config.Dir, func(partial string) (err error) {
		forked, err = config.fill(ctx, partial)
		return err
	})
	return forked, err
}

func (c *RunConfig) fill(ctx context.Context, dir string) (forked ForkedRun, err error) {
	from, run := filepath.Dir(c.Source.Dir()), filepath.Base(c.Dir)
	progress, finish := c.Progress.start(Operation{Name: "forking", Total: c.At})
	forked.Forked, err = Copy(ctx, c.Source, eventlog.Dir(dir), Config{
		At: c.At, Run: run, Time: time.Now(), Options: eventlog.Options{Logger: c.Logger},
		Configure: func(started *events.RunStarted) (err error) {
			if started.Config, err = c.Host.Configure(from, started.Config, c.Changes); err == nil {
				started.Steps, err = c.Host.Steps(started.Config, started.Problems)
			}
			return err
		},
	}, progress)
	finish()
	if err != nil {
		return forked, err
	}
	if err := rundir.WriteFile(rundir.Config(dir), []byte(forked.Config), rundir.FileMode); err != nil {
		return forked, err
	}
	if err := c.Host.PlaceStart(from, dir); err != nil {
		return forked, err
	}
	log, err := eventlog.Open(eventlog.Dir(dir), eventlog.Options{Logger: c.Logger})
	if err != nil {
		return forked, err
	}
	versions := make(map[events.Role][]int)
	for role, u := range forked.Newest {
		versions[role] = []int{u.Version}
	}
	r := resumption{
		host: c.Host, retrainer: c.Retrainer, log: log, progress: c.Progress,
		dir: dir, run: run, config: forked.Config, from: from, fromRun: forked.Origin.Run,
	}
	err = r.resume(ctx, versions)
	forked.Open, forked.Retrained = r.seeded.Open, r.retrained
	return forked, errors.Join(err, log.Close())
}
