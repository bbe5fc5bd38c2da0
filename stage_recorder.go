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
	"time"

	"github.com/alecthomas/kong"

	"codea1/events"
)

// RecorderStage begins a run or goes on with it.
type RecorderStage struct {
	ProcessFlags
	RunFlags
}

// Validate checks the flags of the process and those of the run.
func (r *RecorderStage) Validate() error {
	return errors.Join(r.ProcessFlags.Validate(), r.RunFlags.Validate())
}

// BeforeResolve adds the layers below the command line. A run that has begun
// keeps its configuration: no layer may contradict it.
func (r *RecorderStage) BeforeResolve(ctx *kong.Context) error {
	dir := filepath.Join(cmp.Or(given(ctx, "runs-dir"), defaultRunsDir), given(ctx, "run"))
	saved, err := savedConfig(ctx, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return addLayers(ctx, given(ctx, "config"), saved)
}

// Run waits until no other recorder has the run, then records it until it is
// completed or ctx ends. That a recorder ends is no end of the attempt: the
// others work on, and the next recorder catches up.
func (r *RecorderStage) Run(ctx context.Context, flags *kong.Context, logger *slog.Logger) (err error) {
	s, err := r.station(r.RunsDir, logger)
	if err != nil {
		return err
	}
	// Mistakes are told before there is anything to wait for.
	if _, _, _, err := recorderFlags(flags.Args, s.dir); err != nil {
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
	config, err := r.directory(s, flags.Args)
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
// configuration that run.started states.
func (r *RecorderStage) directory(s *station, args []string) (config string, err error) {
	var begun bool
	if s.flags, config, begun, err = recorderFlags(args, s.dir); err != nil || begun {
		return config, err
	}
	if _, err := os.Stat(s.dir); err == nil {
		return "", fmt.Errorf("%s is no run: it has no config.yaml; choose another --run or --runs-dir", s.dir)
	}
	_, err = newRun(s.flags.RunsDir, s.run, config, time.Now())
	return config, err
}

// recorderFlags reads a recorder's command line against the configuration in
// the run's directory, as it is now: another recorder may begin the run while
// this one waits. It returns the flags of the run, its configuration, and
// whether it has begun.
func recorderFlags(args []string, dir string) (*RunFlags, string, bool, error) {
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		return nil, "", false, err
	}
	flags, err := parser.Parse(args)
	if err != nil {
		return nil, "", false, err
	}
	run := &cli.Stage.Recorder.RunFlags
	if _, err := run.recipe(); err != nil {
		return nil, "", false, err
	}
	saved, err := savedConfig(flags, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", false, err
	}
	l := layers{saved: saved}
	for _, p := range flags.Path {
		if p.Flag == nil || p.Resolved {
			continue
		}
		if err := l.mayBe(p.Flag, "--"+p.Flag.Name, fmt.Sprint(flags.FlagValue(p.Flag))); err != nil {
			return nil, "", false, err
		}
	}
	config, err := runYAML(flags)
	return run, config, saved != nil, err
}
