package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"codea1/events"
	"codea1/events/process"
	"codea1/events/rundir"
	"codea1/events/rundir/saved"
	"codea1/events/services"
	"codea1/events/settings"
)

// RecorderStage begins a run or resumes it.
type RecorderStage struct {
	process.Flags
	settings.ConfigFlag
	RunSettings
}

// BeforeReset makes the settings of the run that has begun, or else those of the
// preset, and the configuration file above them, the defaults of the flags. Kong
// calls it before the environment and the command line set anything.
func (c *RecorderStage) BeforeReset(ctx *kong.Context) error {
	begun, err := openBegun(context.Background(), filepath.Join(settings.GivenOr(ctx, "runs-dir", rundir.Default), settings.GivenOr(ctx, "run", "")))
	if err != nil {
		return err
	}
	if err := begun.checkName(); err != nil {
		return err
	}
	base, err := c.base(ctx, begun)
	if err != nil {
		return err
	}
	settings.Layer(ctx.Flags(), base)
	return nil
}

// base returns the settings below the environment and the command line.
func (*RecorderStage) base(ctx *kong.Context, begun *begunRun) (*Settings, error) {
	path, text, err := settings.File(ctx)
	if err != nil {
		return nil, err
	}
	if begun == nil {
		return presets.Read(path, text, settings.GivenOr(ctx, "preset", ""))
	}
	base := *begun.Settings
	return &base, settings.Read(path, text, &base)
}

// Validate checks the flags of the process and the settings of the run.
func (c *RecorderStage) Validate(ctx *kong.Context) error {
	if err := errors.Join(c.Flags.Validate(), c.validate(settings.SourceOf(ctx))); err != nil || c.RunName == "" {
		return err
	}
	_, _, err := c.settle(ctx)
	return err
}

// settle returns the settings of the run as its directory and the flags have
// them now, and the run if it has begun: another recorder may begin it while this
// one waits.
func (c *RecorderStage) settle(ctx *kong.Context) (run *RunSettings, begun *begunRun, err error) {
	begun, err = openBegun(context.Background(), filepath.Join(c.RunsDir, c.RunName))
	if err != nil {
		return nil, nil, err
	}
	base, err := c.base(ctx, begun)
	if err != nil {
		return nil, nil, err
	}
	run = &base.RunSettings
	settings.Copy(run, &c.RunSettings, func(f *settings.Field) bool {
		_, _, given := settings.Given(ctx, f.Key)
		return given
	})
	if begun != nil {
		err = saved.Unchanged(&begun.RunSettings, run, settings.SourceOf(ctx))
	}
	return run, begun, err
}

// Run waits until no other process is the recorder of the run, then records it
// until it is completed or ctx ends. The attempt does not end with the recorder:
// the other stages continue, and the next recorder catches up.
func (c *RecorderStage) Run(ctx context.Context, flags *kong.Context, logger *slog.Logger) (err error) {
	p, err := c.New(c.RunsDir, logger)
	if err != nil {
		return err
	}
	r := &runner{Process: p}
	if r.Bus, err = c.Join(ctx, &c.Bus, flags.Selected().Name, logger); err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	r.OnClose(r.Bus.Close)
	g, stop := services.NewGroup(context.WithoutCancel(ctx)) // the log takes all messages that were read
	defer func() { err = errors.Join(err, stop(), r.Close()) }()
	if err := c.OpenProbe(ctx, p, g); err != nil {
		return err
	}
	if _, err := r.Lease(ctx, g, events.StageRecorder); err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	logger.Info("the recorder starts", "run", c.RunName, "dir", r.Dir, "instance", r.Instance)
	config, err := c.begin(r, flags)
	if err != nil {
		return err
	}
	recording := &recording{runner: r}
	if err := recording.open(ctx); err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	if recording.Completed {
		return nil // another recorder completed it while this one waited
	}
	if err := recording.begin(ctx, g, config); err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	select {
	case <-recording.Finished():
		logger.Info("the run is trained", "run", c.RunName, "steps", recording.Trained())
	case <-g.Done():
		return nil // stop returns the error
	case <-ctx.Done():
		return nil
	}
	closing, cancel := services.Outlive(ctx, stopTimeout)
	defer cancel()
	return recording.Finish(closing, g, recording.Reason())
}

// begin sets the runner's settings, creates the run directory unless it
// exists, and returns the configuration for run.started.
func (c *RecorderStage) begin(r *runner, flags *kong.Context) (config string, err error) {
	settled, begun, err := c.settle(flags)
	if err != nil {
		return "", err
	}
	r.configure(settled)
	config, err = configText(r.settings, &r.settings.Bus)
	if err != nil {
		return "", err
	}
	if begun != nil {
		return config, begun.repair(r.Logger)
	}
	if _, err := os.Stat(r.Dir); err == nil {
		return "", fmt.Errorf("%s is no run: it has no config.yaml; choose another --run or --runs-dir", r.Dir)
	}
	_, err = rundir.Create(r.settings.RunsDir, r.Run, config, time.Now())
	return config, err
}
