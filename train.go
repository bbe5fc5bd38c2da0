package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/alecthomas/kong"

	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/rundir"
	"codea1/events/rundir/saved"
	"codea1/events/services"
	"codea1/events/settings"
)

// TrainCommand is `codea1 train`: every stage of a run in one process.
type TrainCommand struct {
	Resume string `help:"Resume a run, by name or directory." placeholder:"RUN" xor:"run"`
	Name   string `help:"Name of the new run; the time by default." placeholder:"RUN" xor:"run"`
	settings.ConfigFlag
	Settings

	begun *begunRun // the run to resume; nil for a new one
}

// BeforeReset makes the settings of the run to resume, or those of the
// configuration file and the preset, the defaults of the flags. Kong calls it
// before the environment and the command line set anything.
func (t *TrainCommand) BeforeReset(ctx *kong.Context) error {
	path, text, err := settings.File(ctx)
	if err != nil {
		return err
	}
	resume := settings.GivenOr(ctx, "resume", "")
	if resume == "" {
		base, err := presets.Read(path, text, settings.GivenOr(ctx, "preset", ""))
		if err != nil {
			return err
		}
		settings.Layer(ctx.Flags(), base)
		return nil
	}
	if path != "" {
		return errors.New("--resume takes the configuration of the run: leave out --config")
	}
	dir, err := rundir.Find(settings.GivenOr(ctx, "runs-dir", ""), resume)
	if err != nil {
		return err
	}
	if t.begun, err = openBegun(context.Background(), dir); err != nil {
		return err
	}
	if t.begun == nil {
		return fmt.Errorf("run %s: %w: %s", dir, saved.ErrNoSettings, saved.FromBus)
	}
	if err := t.begun.checkName(); err != nil {
		return err
	}
	settings.Layer(ctx.Flags(), t.begun.Settings)
	return nil
}

// Validate checks the settings and, where a run is resumed, that it stays the
// same run.
func (t *TrainCommand) Validate(ctx *kong.Context) error {
	if err := settings.Check(&t.Settings, settings.SourceOf(ctx)); err != nil {
		return err
	}
	if t.begun != nil {
		if err := saved.Unchanged(&t.begun.RunSettings, &t.RunSettings, settings.SourceOf(ctx)); err != nil {
			return err
		}
	}
	return t.validate(settings.SourceOf(ctx))
}

// gcPercent keeps a training on a laptop well below a gigabyte. Most of the heap
// is never freed, so a lower percentage costs little: the default preset peaks at
// 566 MiB instead of 932 and takes two per cent more time. GOGC overrides it.
const gcPercent = 50

// recentBytes bounds the decoded payloads that the stages of the process share:
// about 80 groups at the paper's sizes.
const recentBytes = 32 << 20

// Run trains until the planned steps are done or ctx ends.
func (t *TrainCommand) Run(ctx context.Context, flags *kong.Context, out io.Writer, logger *slog.Logger) error {
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	}
	defer events.Remember(recentBytes)()
	config, err := configText(&t.Settings, &t.Bus)
	if err != nil {
		return err
	}
	run := ""
	if t.begun != nil {
		run = t.begun.Dir
	}
	say := func(role events.Role, demand string) { fmt.Fprintf(flags.Stderr, "%s  %s\n", role, demand) }
	if err := t.modelConfig().CheckTraining(run, say); err != nil {
		return err
	}
	r, err := openTraining(ctx, t, config, logger)
	if err != nil {
		return err
	}
	err = r.train(ctx, config, out, flags.Stderr)
	if services.Canceled(ctx, err) { // the run has begun, but no stage has
		fmt.Fprintf(out, "\nStopped before a stage was started.\nResume with:  codea1 train --resume %s\n", commandline.Word(r.again()))
		err = nil
	}
	if errors.Is(err, events.ErrPosition) {
		err = fmt.Errorf("%w\nthe bus has lost events that the log has: codea1 replay restore-bus %s publishes them on a new one", err, commandline.Word(r.again()))
	}
	return errors.Join(err, r.Close())
}

// directory returns the directory of the run to resume, or makes that of a new
// run with its configuration.
func (t *TrainCommand) directory(config string, logger *slog.Logger) (string, error) {
	if t.begun == nil {
		return rundir.Create(t.RunsDir, t.Name, config, time.Now())
	}
	return t.begun.Dir, t.begun.repair(logger)
}
