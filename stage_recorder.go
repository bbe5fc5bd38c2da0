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
	"codea1/events/settings"
)

// RecorderStage begins a run or resumes it.
type RecorderStage struct {
	ProcessFlags
	ConfigFlag
	RunSettings
}

// BeforeReset makes the settings of the run that has begun, or else those of the
// preset, and the configuration file above them, the defaults of the flags. Kong
// calls it before the environment and the command line set anything.
func (r *RecorderStage) BeforeReset(ctx *kong.Context) error {
	begun, err := savedSettings(filepath.Join(givenOr(ctx, "runs-dir", defaultRunsDir), givenOr(ctx, "run", "")))
	if err != nil {
		return err
	}
	base, err := r.base(ctx, begun)
	if err != nil {
		return err
	}
	settings.Layer(ctx.Flags(), base)
	return nil
}

// base returns the settings below the environment and the command line.
func (*RecorderStage) base(ctx *kong.Context, begun *Settings) (*Settings, error) {
	path, text, err := configFile(ctx)
	if err != nil {
		return nil, err
	}
	if begun == nil {
		return readSettings(path, text, givenOr(ctx, "preset", ""))
	}
	base := *begun
	return &base, settings.Read(path, text, &base)
}

// Validate checks the flags of the process and the settings of the run.
func (r *RecorderStage) Validate(ctx *kong.Context) error {
	if err := errors.Join(r.ProcessFlags.Validate(), r.validate(givenBy(ctx))); err != nil || r.RunName == "" {
		return err
	}
	_, _, err := r.settle(ctx)
	return err
}

// settle returns the settings of the run as its directory and the flags have
// them now, and whether the run has begun: another recorder may begin it while
// this one waits.
func (r *RecorderStage) settle(ctx *kong.Context) (run *RunSettings, hasBegun bool, err error) {
	begun, err := savedSettings(filepath.Join(r.RunsDir, r.RunName))
	if err != nil {
		return nil, false, err
	}
	base, err := r.base(ctx, begun)
	if err != nil {
		return nil, false, err
	}
	run = &base.RunSettings
	settings.Copy(run, &r.RunSettings, func(f *settings.Field) bool {
		_, _, given := settings.Given(ctx, f.Key)
		return given
	})
	if begun != nil {
		err = unchanged(&begun.RunSettings, run, givenBy(ctx))
	}
	return run, begun != nil, err
}

// Run waits until no other recorder has the run, then records it until it is
// completed or ctx ends. That a recorder ends is no end of the attempt: the
// others work on, and the next recorder catches up.
func (r *RecorderStage) Run(ctx context.Context, flags *kong.Context, logger *slog.Logger) (err error) {
	s, err := r.station(r.RunsDir, logger)
	if err != nil {
		return err
	}
	if s.bus, err = joinBus(ctx, &r.Bus, r.RunName, flags, logger); err != nil {
		return err
	}
	s.owns(s.bus.Close)
	c, stop := newCircle(context.WithoutCancel(ctx)) // the recorder keeps what it has read
	defer func() { err = errors.Join(err, stop(), s.close()) }()
	if err := s.openProbe(ctx, c, r.ProbeAddress); err != nil {
		return err
	}
	if _, err := s.lease(ctx, c, events.StageRecorder); err != nil {
		return unlessEnded(ctx, err)
	}
	logger.Info("records the run", "run", r.RunName, "dir", s.dir, "instance", s.instance)
	config, err := r.directory(s, flags)
	if err != nil {
		return err
	}
	recording := newRecording(s)
	if err := recording.open(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	if recording.completed {
		return nil // by another recorder, while this one waited
	}
	if err := recording.begin(ctx, c, config); err != nil {
		return unlessEnded(ctx, err)
	}
	select {
	case <-recording.finished:
		logger.Info("the run is trained", "run", r.RunName, "steps", recording.trained.Load())
	case <-c.Done():
		return nil // stop has the error
	case <-ctx.Done():
		return nil
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return recording.finish(closing, c, recording.reason())
}

// directory makes the run's directory where there is none yet, and returns the
// configuration for run.started.
func (r *RecorderStage) directory(s *station, flags *kong.Context) (config string, err error) {
	run, begun, err := r.settle(flags)
	if err != nil {
		return "", err
	}
	s.settings = run
	config, err = configText(run, &run.Bus)
	if err != nil || begun {
		return config, err
	}
	if _, err := os.Stat(s.dir); err == nil {
		return "", fmt.Errorf("%s is no run: it has no config.yaml; choose another --run or --runs-dir", s.dir)
	}
	_, err = newRun(run.RunsDir, s.run, config, time.Now())
	return config, err
}
