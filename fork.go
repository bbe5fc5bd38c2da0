package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"codea1/events"
	"codea1/events/connect"
	"codea1/gpuworker/checkpoint"
	"codea1/replay"
)

// AfterApply gives the commands of replay what a run goes on with. Kong calls
// it once the flags are known.
func (c *CLI) AfterApply() error { //nolint:unparam // as kong calls it
	c.Replay.Host = &host{newLogger(os.Stderr, max(c.logLevel("replay"), slog.LevelError))}
	return nil
}

// host leads package replay to what a run goes on with.
type host struct{ logger *slog.Logger }

// forkKeeps are the flags that a fork shares with its origin, because what it
// shares was made with them: version 0, the groups of a step on its way, and
// the evaluations that others are compared with.
var forkKeeps = []string{"code-model", "test-model", "problems-per-step", "heldout", "eval-problems"}

// Configure implements replay.Host.
func (h *host) Configure(dir, config string, changes map[string]string) (string, error) {
	args, err := machineArgs(dir, changes)
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if slices.Contains(forkKeeps, name) {
			return "", fmt.Errorf("--set %s: the fork shares what was made with it; start a new run", name)
		}
		args = append(args, "--"+name+"="+changes[name])
	}
	var cli CLI
	cli.Train.started = config
	parser, err := newParser(&cli)
	if err != nil {
		return "", err
	}
	flags, err := parser.Parse(append([]string{"train"}, args...))
	if err != nil && len(changes) > 0 {
		err = fmt.Errorf("--set: %w", err)
	}
	if err != nil {
		return "", err
	}
	return runYAML(flags)
}

// machineArgs returns flags that say of the machine what the configuration in a
// run directory says, but for those that are set otherwise.
func machineArgs(dir string, changes map[string]string) ([]string, error) {
	if _, err := os.Stat(configPath(dir)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		return nil, err
	}
	flags, err := parser.Parse([]string{"train", "--resume", dir})
	if err != nil {
		return nil, err
	}
	var args []string
	for _, f := range flags.Flags() {
		if _, set := changes[f.Name]; slices.Contains(ofMachine, f.Name) && !set {
			args = append(args, fmt.Sprintf("--%s=%v", f.Name, flags.FlagValue(f)))
		}
	}
	return args, nil
}

// OpenBus implements replay.Host.
func (h *host) OpenBus(ctx context.Context, dir, run, config string) (replay.SeedBus, func() error, error) {
	flags, err := configuredFlags(config)
	if err != nil {
		return nil, nil, err
	}
	if flags.Bus.URL != connect.Embedded {
		bus, err := flags.Bus.Open(ctx, "codea1-"+run, h.logger)
		if err != nil {
			return nil, nil, err
		}
		return bus, bus.Close, nil
	}
	server, bus, err := flags.Bus.OpenEmbedded(ctx, run, natsPath(dir), 0, h.logger)
	if err != nil {
		return nil, nil, err
	}
	return bus, func() error {
		err := bus.Close()
		server.Shutdown()
		return err
	}, nil
}

// configuredFlags returns the flags that a run's configuration stands for.
func configuredFlags(config string) (*RunFlags, error) {
	return startedFlags(&events.RunStarted{Attempt: 1, Config: config}, nil)
}

// Steps implements replay.Host.
func (h *host) Steps(config string, problems int) (int, error) {
	flags, err := configuredFlags(config)
	if err != nil {
		return 0, err
	}
	return flags.steps(problems), nil
}

// PutBusAside implements replay.Host.
func (h *host) PutBusAside(dir, config string) error {
	flags, err := configuredFlags(config)
	if err != nil || flags.Bus.URL != connect.Embedded {
		return err
	}
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.lost-%d", natsPath(dir), n)
		if _, err := os.Lstat(aside); err == nil {
			continue
		}
		if err := os.Rename(natsPath(dir), aside); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
}

// WorkSets implements replay.Host.
func (h *host) WorkSets() []replay.WorkSet {
	var sets []replay.WorkSet
	for _, s := range events.Workers() {
		sets = append(sets, replay.WorkSet{Name: s.Name, Types: s.Consumes})
	}
	return sets
}

// Checkpoints implements replay.Host.
func (h *host) Checkpoints(dir string, role events.Role) ([]int, error) {
	return checkpoint.Folder{Path: checkpointPath(dir, role)}.Versions()
}

// PlaceCheckpoint implements replay.Host.
func (h *host) PlaceCheckpoint(ctx context.Context, p replay.Placement) error {
	from := checkpointPath(p.From, p.Role)
	if p.Made {
		from = p.From
	}
	return checkpoint.Copy(ctx,
		checkpoint.Folder{Path: from, Run: p.FromRun, Role: p.Role},
		checkpoint.Folder{Path: checkpointPath(p.To, p.Role), Run: p.Run, Role: p.Role},
		p.Version, p.Position)
}

// PlaceStart implements replay.Host.
func (h *host) PlaceStart(from, to string) error {
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		target := startPath(to, role)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := checkpoint.CopyInitial(startPath(from, role), target); err != nil {
			return err
		}
	}
	return nil
}

// RemoveCheckpoint implements replay.Host.
func (h *host) RemoveCheckpoint(dir string, role events.Role, version int) error {
	return checkpoint.Folder{Path: checkpointPath(dir, role)}.Remove(version)
}
