package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"codea1/consumers/dashboard"
	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/connect"
	"codea1/events/rundir"
	"codea1/events/rundir/saved"
	"codea1/events/settings"
	"codea1/gpuworker"
	"codea1/gpuworker/checkpoint"
	"codea1/replay/eventlog"
	"codea1/replay/fork"
	"codea1/replay/tap"
)

// AfterApply sets the host of the commands that read a run. Kong calls it when the
// flags are known.
func (c *CLI) AfterApply() error { //nolint:unparam // kong expects the error
	h := &host{newLogger(os.Stderr, max(c.logLevel("replay"), slog.LevelError))}
	c.Replay.Host, c.Tap.Host, c.Track.Host, c.Shadow.Host = h, h, h, h
	return nil
}

// host gives the replay commands the configuration, the bus and the checkpoints of
// a run.
type host struct{ logger *slog.Logger }

// Configure implements fork.Host.
func (h *host) Configure(dir, config string, changes map[string]string) (string, error) {
	s, err := startedSettings(config)
	if err != nil {
		return "", err
	}
	switch begun, err := openHosted(dir); {
	case errors.Is(err, saved.ErrNoSettings) || begun == nil && err == nil:
	case err != nil:
		return "", err
	default:
		settings.Copy(s, begun.Settings, settings.OfMachine)
	}
	fixed := *s
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if err := settings.Set(s, name, changes[name]); err != nil {
			return "", commandline.Wrong(fmt.Errorf("--set: %w", err))
		}
	}
	// The fork shares version 0, the groups of an unfinished step and the first
	// evaluations with its origin. They were made with these settings.
	if changed := settings.Differences(&fixed, s, func(f *settings.Field) bool { return f.Change == settings.ChangeNever }); len(changed) > 0 {
		return "", commandline.Wrong(fmt.Errorf("--set %s: the fork shares data that was made with the old value; start a new run", changed[0].Is.Key))
	}
	if fixed.models() != s.models() {
		return "", commandline.Wrong(fmt.Errorf("--set reward: the run was started with --reward %s, and the other reward needs other models; start a new run", fixed.Reward.Reward))
	}
	if err := s.validate(func(key string) string { return "--set " + key }); err != nil {
		return "", commandline.Wrong(err)
	}
	return configText(s, &s.Bus)
}

// openHosted is openBegun for a command that reads the log itself, or makes a
// damaged one again from the bus: the file alone defines the run then.
func openHosted(dir string) (*begunRun, error) {
	begun, err := openBegun(context.Background(), dir)
	var corrupt *eventlog.CorruptError
	if errors.As(err, &corrupt) {
		return readBegun(dir, nil)
	}
	return begun, err
}

// Config implements fork.Host.
func (h *host) Config(dir string) (string, error) {
	begun, err := openHosted(dir)
	if errors.Is(err, saved.ErrNoSettings) || begun == nil && err == nil {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return configText(begun.Settings, &begun.Bus)
}

// Bus implements tap.Host.
func (h *host) Bus(dir string) (*connect.Flags, error) {
	begun, err := openHosted(dir)
	if err != nil || begun == nil {
		return nil, errors.Join(err, saved.ErrNoSettings)
	}
	return &begun.Bus, nil
}

// HasLog implements show.Host.
func (h *host) HasLog(dir string) bool { return eventlog.Exists(rundir.Log(dir)) }

// OpenLog implements show.Host.
func (h *host) OpenLog(dir string, logger *slog.Logger) (dashboard.Bus, func() error, error) {
	log, err := eventlog.Open(rundir.Log(dir), eventlog.Options{ReadOnly: true, Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	return eventlog.LogBus{Log: log}, log.Close, nil
}

// Events implements track.Host. It reads as the command tap does.
func (h *host) Events(ctx context.Context, run, runsDir string, bus *connect.Flags, types []events.Type, handle func(*events.Event) error, idle func()) error {
	reader := tap.Command{Host: h, RunName: run, RunsDir: runsDir, From: "start", Type: types, Bus: *bus}
	return reader.Events(ctx, h.logger, handle, idle)
}

// OpenBus implements fork.Host.
func (h *host) OpenBus(ctx context.Context, dir, run, config string) (fork.SeedBus, func() error, error) {
	s, err := startedSettings(config)
	if err != nil {
		return nil, nil, err
	}
	if s.Bus.URL != connect.Embedded {
		bus, err := s.Bus.Open(ctx, "codea1-"+run, h.logger)
		if err != nil {
			return nil, nil, err
		}
		return bus, bus.Close, nil
	}
	server, bus, err := s.Bus.OpenEmbedded(ctx, run, rundir.NATS(dir), 0, h.logger)
	if err != nil {
		return nil, nil, err
	}
	return bus, func() error {
		err := bus.Close()
		server.Shutdown()
		return err
	}, nil
}

// Steps implements fork.Host.
func (h *host) Steps(config string, problems int) (int, error) {
	s, err := startedSettings(config)
	if err != nil {
		return 0, err
	}
	return s.steps(problems), nil
}

// PutBusAside implements fork.Host.
func (h *host) PutBusAside(dir, config string) error {
	s, err := startedSettings(config)
	if err != nil || s.Bus.URL != connect.Embedded {
		return err
	}
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.lost-%d", rundir.NATS(dir), n)
		if _, err := os.Lstat(aside); err == nil {
			continue
		}
		if err := os.Rename(rundir.NATS(dir), aside); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
}

// Checkpoints implements fork.Host.
func (h *host) Checkpoints(dir string, role events.Role) ([]int, error) {
	return checkpoint.Folder{Path: rundir.Checkpoints(dir, role)}.Versions()
}

// PlaceCheckpoint implements fork.Host.
func (h *host) PlaceCheckpoint(ctx context.Context, p fork.Placement) error {
	from := rundir.Checkpoints(p.From, p.Role)
	if p.Made {
		from = p.From
	}
	return checkpoint.Copy(ctx,
		checkpoint.Folder{Path: from, Run: p.FromRun, Role: p.Role},
		checkpoint.Folder{Path: rundir.Checkpoints(p.To, p.Role), Run: p.Run, Role: p.Role},
		p.Version, p.Position)
}

// PlaceStart implements fork.Host.
func (h *host) PlaceStart(from, to string) error {
	begun, err := readBegun(to, nil)
	if err != nil || begun == nil {
		return cmp.Or(err, saved.ErrNoSettings)
	}
	for _, role := range begun.models().Roles() {
		if begun.modelConfig().OnServer(role) {
			continue // it has no checkpoint
		}
		target := rundir.Start(to, role)
		if err := os.MkdirAll(filepath.Dir(target), rundir.DirMode); err != nil {
			return err
		}
		if err := checkpoint.CopyInitial(rundir.Start(from, role), target); err != nil {
			return err
		}
	}
	return nil
}

// RemoveCheckpoint implements fork.Host.
func (h *host) RemoveCheckpoint(dir string, role events.Role, version int) error {
	return checkpoint.Folder{Path: rundir.Checkpoints(dir, role)}.Remove(version)
}

// retrainer implements fork.Retrainer with the trainer of package gpuworker.
type retrainer struct{ logger *slog.Logger }

// Retrain implements fork.Retrainer. It starts from version 0 in the run directory
// and trains each part with the configuration of that part.
func (r *retrainer) Retrain(ctx context.Context, job fork.RetrainJob) error {
	for i := range job.Parts {
		if err := r.part(ctx, &job, &job.Parts[i]); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// part continues from the checkpoint of the part before, like the trainer of a
// fork.
func (r *retrainer) part(ctx context.Context, job *fork.RetrainJob, part *fork.RetrainPart) error {
	s, err := retrainSettings(job.RunDir, part.Start.Config)
	if err != nil {
		return err
	}
	return s.modelConfig().Retrain(ctx, gpuworker.TrainerConfig{
		Bus: job.Bus, Run: job.Run, Role: job.Role, Shared: part.Start.Models.Shared(),
		Checkpoints: job.Work, Initial: rundir.Start(job.RunDir, job.Role), Steps: part.Last,
	}, s.steps(part.Start.Problems), r.logger)
}

// retrainSettings returns the settings of a run.started, with those of this machine
// from the run directory and the environment.
func retrainSettings(dir, config string) (*Settings, error) {
	s, err := startedSettings(config)
	if err != nil {
		return nil, err
	}
	path := rundir.Config(dir)
	text, err := os.ReadFile(path)
	if err == nil {
		saved, err := presets.Read(path, text, "")
		if err != nil {
			return nil, err
		}
		settings.Copy(s, saved, settings.OfMachine)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	var now RunSettings
	if err := settings.Resolve(&now, &s.RunSettings, envPrefix); err != nil {
		return nil, err
	}
	settings.Copy(s, &now, settings.OfMachine)
	return s, nil
}
