package fork

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
)

// RunConfig says how a run is forked.
type RunConfig struct {
	Host      Host
	Retrainer Retrainer         // nil: a checkpoint that was not kept is an error
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

// Run makes the directory of a run that shares the beginning of another: log,
// bus, configuration and checkpoints. On an error it leaves no directory.
func Run(ctx context.Context, config RunConfig) (ForkedRun, error) {
	f := forking{RunConfig: config, from: filepath.Dir(config.Source.Dir()), run: filepath.Base(config.Dir)}
	err := intoEmpty(config.Dir, func(partial string) error { return f.fill(ctx, partial) })
	return ForkedRun{f.forked, f.seeded.Open, f.retrained}, err
}

// forking fills the directory of a fork.
type forking struct {
	RunConfig
	from string // run directory of the origin
	run  string

	forked    Forked
	seeded    Seeded
	retrained []string
}

func (f *forking) fill(ctx context.Context, dir string) error {
	progress, finish := f.Progress.start("forking", f.At)
	forked, err := Copy(ctx, f.Source, eventlog.Dir(dir), Config{
		At: f.At, Run: f.run, Time: time.Now(), Options: eventlog.Options{Logger: f.Logger},
		Configure: func(started *events.RunStarted) error {
			var err error
			if started.Config, err = f.Host.Configure(f.from, started.Config, f.Changes); err == nil {
				started.Steps, err = f.Host.Steps(started.Config, started.Problems)
			}
			return err
		},
	}, progress)
	finish()
	if err != nil {
		return err
	}
	f.forked = forked
	if err := os.WriteFile(filepath.Join(dir, ConfigFile), []byte(forked.Config), 0o644); err != nil {
		return err
	}
	if err := f.Host.PlaceStart(f.from, dir); err != nil {
		return err
	}
	log, err := eventlog.Open(eventlog.Dir(dir), eventlog.Options{Logger: f.Logger})
	if err != nil {
		return err
	}
	return errors.Join(f.goOn(ctx, dir, log), log.Close())
}

// goOn makes bus, log and trainers stand at the fork.
func (f *forking) goOn(ctx context.Context, dir string, log *eventlog.Log) error {
	versions := make(map[events.Role]int)
	for role, u := range f.forked.Newest {
		versions[role] = u.Version
	}
	s := standing{Host: f.Host, log: log, progress: f.Progress, dir: dir, run: f.run, config: f.forked.Config}
	var err error
	f.seeded, err = s.seed(ctx, slices.Collect(maps.Values(versions)))
	if err != nil {
		return err
	}
	for _, role := range bothRoles {
		if versions[role] == 0 {
			continue
		}
		p := Placement{From: f.from, FromRun: f.forked.Origin.Run, To: dir, Run: f.run, Role: role, Version: versions[role]}
		again, err := s.place(ctx, p, f.Retrainer, f.from)
		if err != nil {
			return err
		}
		if again {
			f.retrained = append(f.retrained, fmt.Sprintf("%s v%d", role, versions[role]))
		}
	}
	return log.Rebase(f.seeded.End)
}
