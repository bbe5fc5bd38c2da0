package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"codea1/consumers/dashboard"
	"codea1/events"
)

// TrainCommand is `codea1 train`: every stage of a run in one process.
type TrainCommand struct {
	Resume string `help:"Go on with a run, by name or directory, where it stopped." placeholder:"RUN" xor:"which"`
	Name   string `help:"Name of the new run; by default the time." placeholder:"RUN" xor:"which"`
	RunFlags
	Budget    time.Duration   `help:"Time that this attempt at the run may take, the evaluation at its end included; 0 for as long as the steps take. Learning rates follow the planned steps all the same." default:"0s"`
	Port      int             `help:"Loopback port of the embedded NATS server; 0 for 4222, or any if that is taken." default:"0" group:"Message bus"`
	Dashboard dashboard.Flags `embed:""`

	// started is the configuration of a run that goes on elsewhere, as its
	// run.started states it: in place of --resume.
	started string
}

// Validate checks the flags of the run and those of train alone.
func (t *TrainCommand) Validate() error {
	if t.Budget < 0 {
		return fmt.Errorf("--budget is %v; want more than 0, or 0 for none", t.Budget)
	}
	return t.RunFlags.Validate()
}

// BeforeResolve adds the layers below the command line. Kong calls it once that
// is parsed and before anything else is filled in.
func (t *TrainCommand) BeforeResolve(ctx *kong.Context) error {
	if t.started != "" {
		saved, err := parseConfig("in run.started", []byte(t.started), trainKeys(ctx))
		if err != nil {
			return err
		}
		for _, key := range ofMachine {
			delete(saved, key)
		}
		return addLayers(ctx, "", saved)
	}
	path, resume := given(ctx, "config"), given(ctx, "resume")
	if resume == "" {
		return addLayers(ctx, path, nil)
	}
	if path != "" {
		return errors.New("--resume goes on with the run's own configuration: leave out --config")
	}
	dir, err := findRun(given(ctx, "runs-dir"), resume)
	if err != nil {
		return err
	}
	saved, err := savedConfig(ctx, dir)
	if err != nil {
		return err
	}
	return addLayers(ctx, "", saved)
}

// savedConfig returns the configuration in a run directory.
func savedConfig(ctx *kong.Context, dir string) (map[string]string, error) {
	text, err := os.ReadFile(configPath(dir))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return parseConfig(configPath(dir), text, trainKeys(ctx))
}

// gcPercent keeps a training on a laptop well below a gigabyte: most of its heap
// lives as long as it does. The default preset then peaks at 566 MiB instead of
// 932, for two per cent more time. GOGC sets another value.
const gcPercent = 50

// recentBytes is how much of what stages publish is kept for the other stages of
// the process to read: some 80 groups at the paper's sizes.
const recentBytes = 32 << 20

// Run trains until the planned steps are done or ctx ends.
func (t *TrainCommand) Run(ctx context.Context, flags *kong.Context, out io.Writer, logger *slog.Logger) error {
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	}
	defer events.Remember(recentBytes)()
	config, err := runYAML(flags)
	if err != nil {
		return err
	}
	dir, err := t.directory(flags, config)
	if err != nil {
		return err
	}
	r, err := openTraining(ctx, t, dir, logger)
	if err != nil {
		if t.Resume == "" {
			// Nothing was begun: a second try may use the same name.
			removed := os.RemoveAll(dir)
			if isStop(ctx, err) {
				err = errors.New("stopped before the run was begun; nothing is left of it")
			}
			err = errors.Join(err, removed)
		}
		return err
	}
	err = r.train(ctx, config, out, flags.Stderr)
	if isStop(ctx, err) { // of a run that has begun, but not to train
		fmt.Fprintf(out, "\nStopped before a stage was started.\nGo on with:  codea1 train --resume %s\n", r.again())
		err = nil
	}
	if errors.Is(err, events.ErrPosition) {
		err = fmt.Errorf("%w\nthe bus has lost events that the log has: codea1 replay restore-bus %s publishes them on a new one", err, r.again())
	}
	return errors.Join(err, r.close())
}

// directory returns the directory of the run to resume, or that of a new run
// with its configuration saved.
func (t *TrainCommand) directory(flags *kong.Context, config string) (string, error) {
	if t.Resume == "" {
		return newRun(t.RunsDir, t.Name, config, time.Now())
	}
	for _, p := range flags.Path {
		if p.Flag != nil && !p.Resolved && !slices.Contains(mayChange, p.Flag.Name) {
			return "", fmt.Errorf("--%s is part of what a run is and cannot change when it is resumed; start a new run, or leave the flag out", p.Flag.Name)
		}
	}
	return findRun(t.RunsDir, t.Resume)
}
