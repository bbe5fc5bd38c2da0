package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"codea1/consumers/dashboard"
	"codea1/consumers/execution"
)

const (
	defaultPreset  = "tiny"
	defaultRunsDir = "runs"
)

// TrainCommand is `codea1 train`.
type TrainCommand struct {
	Preset string `help:"Hyper-parameters to start from: tiny (the embedded engine on a laptop) or paper." default:"tiny" enum:"tiny,paper"`
	Config string `help:"YAML file with any of these flags as keys; print one with codea1 config." placeholder:"FILE" type:"path"`
	Resume string `help:"Go on with a run, by name or directory, where it stopped." placeholder:"RUN" xor:"which"`
	Name   string `help:"Name of the new run; by default the time." placeholder:"RUN" xor:"which"`

	RunsDir  string `help:"Where run directories are." default:"runs" placeholder:"DIR"`
	Problems string `help:"Training problems: builtin:train, or a .jsonl, .jsonl.gz or .parquet file." default:"builtin:train"`
	Heldout  string `help:"Problems of the evaluations, never trained on; empty for no evaluation." default:"builtin:heldout"`
	OnBadRow string `help:"What a malformed row of a problem file does: fail or skip." default:"fail" enum:"fail,skip"`

	CodeModel string `help:"Checkpoint directory the Code LLM starts from; empty for the embedded one." placeholder:"DIR"`
	TestModel string `help:"Checkpoint directory the Test LLM starts from; empty for the embedded one." placeholder:"DIR"`

	Bus  string `help:"Message bus: embedded, the nats:// address of a server with JetStream, or kafka://HOST:PORT[,HOST:PORT]." default:"embedded"`
	Port int    `help:"Loopback port of the embedded NATS server; 0 for 4222, or any if that is taken." default:"0"`

	KeepCheckpoints int `help:"Newest checkpoints kept per model." default:"3"`
	KeepEvery       int `help:"Also keep the checkpoints of steps that this divides; 0 for none." default:"0"`

	Sandbox   execution.Flags `embed:"" group:"Sandbox"`
	Dashboard dashboard.Flags `embed:""`

	Hyper
}

// mayChange are the flags that may differ when a run goes on: where things
// are, how they are shown, and how long it lasts. All others are what the run
// is.
var mayChange = []string{
	"preset", "runs-dir", "steps", "epochs", "eval-every", "bus", "port", "dashboard-address", "no-dashboard", "python", "sandboxes", "sandbox-level",
	"call-timeout", "job-timeout", "memory-mib",
	"keep-checkpoints", "keep-every", "help", "log-level", "resume",
}

// Run trains until the planned steps are done or ctx ends.
func (t *TrainCommand) Run(ctx context.Context, flags *kong.Context, out io.Writer, logger *slog.Logger) error {
	dir, err := t.directory(flags)
	if err != nil {
		return err
	}
	r, err := openRun(ctx, t, dir, logger)
	if err != nil {
		if t.Resume == "" {
			// Nothing was begun: a second try may use the same name.
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return err
	}
	err = r.train(ctx, out)
	return errors.Join(err, r.close())
}

// directory returns the directory of the run to resume, or that of a new run
// with its configuration saved.
func (t *TrainCommand) directory(flags *kong.Context) (string, error) {
	if t.Resume != "" {
		for _, p := range flags.Path {
			if p.Flag != nil && !p.Resolved && !slices.Contains(mayChange, p.Flag.Name) {
				return "", fmt.Errorf("--%s is part of what a run is and cannot change when it is resumed; start a new run, or leave the flag out", p.Flag.Name)
			}
		}
		return findRun(t.RunsDir, t.Resume)
	}
	dir, err := newRun(t.RunsDir, t.Name, time.Now())
	if err != nil {
		return "", err
	}
	text, err := t.yaml(flags)
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(configPath(dir), []byte(text), 0o644)
}

// yaml returns the effective configuration as a file that --config accepts.
func (t *TrainCommand) yaml(flags *kong.Context) (string, error) {
	var b strings.Builder
	err := writeConfig(&b, trainKeys(flags), func(f *kong.Flag) string { return fmt.Sprint(flags.FlagValue(f)) })
	return b.String(), err
}
