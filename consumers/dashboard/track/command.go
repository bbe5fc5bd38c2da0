package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"codea1/events"
	"codea1/events/connect"
	"codea1/events/rundir"
)

// Flags are the flags of a training that writes figures for other tools.
type Flags struct {
	Track       string `name:"track" yaml:"track" placeholder:"TOOLS" help:"Write the figures of the run for these tools too, below the run directory: tensorboard, csv, mlflow or wandb, or otlp for traces of the groups; commas separate them." change:"resume"`
	WandbPython string `name:"wandb-python" yaml:"wandb-python" placeholder:"FILE" help:"Python with the package wandb; empty: python3." change:"resume" scope:"machine"`
}

// Validate refuses an unknown tool. Kong calls it.
func (f *Flags) Validate() error {
	if _, err := parseTools(f.Track); err != nil {
		return fmt.Errorf("--track: %w", err)
	}
	return nil
}

// Dir returns the directory of the files below a run directory.
func Dir(run string) string { return filepath.Join(run, "track") }

// Host reads runs.
type Host interface {
	// Events calls handle with the events of a run, from its first to its end or the end
	// of ctx, and idle when no event follows at once. It returns the error of handle.
	Events(ctx context.Context, run, runsDir string, bus *connect.Flags, types []events.Type, handle func(*events.Event) error, idle func()) error
}

// Command is `codea1 track`.
type Command struct {
	Host Host `kong:"-"`

	RunName     string        `arg:"" name:"run" help:"Directory of a run, or name of a run in --runs-dir or on --bus."`
	RunsDir     string        `help:"Directory of the run directories." default:"runs" placeholder:"DIR"`
	To          string        `help:"Tools to write for: tensorboard, csv, mlflow or wandb, or otlp for traces of the groups, which go to OTEL_EXPORTER_OTLP_ENDPOINT; commas separate them." required:"" placeholder:"TOOLS"`
	Out         string        `help:"Directory for the files. Default: track in the run directory, or ./track for a run without one here." placeholder:"DIR"`
	WandbPython string        `help:"Python with the package wandb." default:"python3" placeholder:"FILE"`
	Bus         connect.Flags `embed:"" group:"Message bus"`
}

// Validate refuses an unknown tool. Kong calls it.
func (c *Command) Validate() error {
	if _, err := parseTools(c.To); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	return nil
}

// Run writes until the run ends or ctx ends. In the last case it returns ctx.Err().
func (c *Command) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	tools, err := parseTools(c.To)
	if err != nil {
		return err
	}
	dir := c.Out
	if dir == "" {
		dir = "track"
		switch run, err := rundir.Find(c.RunsDir, c.RunName); {
		case err == nil:
			dir = Dir(run)
		case c.Bus.URL == connect.Embedded:
			return fmt.Errorf("%w; --bus names the bus of a run on another machine", err)
		}
	}
	t, err := New(tools, dir, cmp.Or(c.WandbPython, "python3"), logger)
	if err != nil {
		return err
	}
	steps := 0
	err = c.Host.Events(ctx, c.RunName, c.RunsDir, &c.Bus, Types(tools), func(e *events.Event) error {
		t.Apply(e)
		steps = t.State().Trained()
		if t.failed != nil && len(t.sinks) == 0 {
			return errGivenUp
		}
		return nil
	}, t.Flush)
	if errors.Is(err, errGivenUp) {
		err = nil // Close says why
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d steps written to %s\n", steps, dir)
	return err
}

var errGivenUp = errors.New("all tools failed")
