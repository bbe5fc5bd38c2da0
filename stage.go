package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/connect"
	"codea1/events/services"
	"codea1/events/stage"
)

// StageCommand is `codea1 stage`: one stage of a run in a separate process. The
// recorder decides the settings of the run; the other stages take them from
// run.started.
type StageCommand struct{ kong.Plugins }

// newStageCommand returns the command with a subcommand for each stage that is
// a process.
func newStageCommand() StageCommand {
	var all StageCommand
	for _, s := range events.Stages {
		if s.Within != "" {
			continue
		}
		help := s.Summary
		if s.Kind == events.Projection && s.Replicas == events.One {
			help += " A run has one; another process waits until that one ends."
		}
		command := stages[s.Name].command
		if command == nil {
			command = WorkerStage{}
		}
		field := reflect.StructField{
			Name: "Stage", Type: reflect.TypeOf(command),
			Tag: reflect.StructTag(fmt.Sprintf(`cmd:"" name:%q help:%q`, s.Name, help)),
		}
		all.Plugins = append(all.Plugins, reflect.New(reflect.StructOf([]reflect.StructField{field})).Interface())
	}
	return all
}

// ProcessFlags are the flags of every process of one stage.
type ProcessFlags struct {
	RunName      string        `name:"run" help:"Name of the run." required:"" placeholder:"RUN"`
	Instance     string        `help:"Name of this process among the replicas of its stage; the host and the process ID by default." placeholder:"NAME"`
	ProbeAddress string        `help:"Address for /metrics and /healthz, which answer everyone with access to it; none by default." placeholder:"HOST:PORT"`
	LeaseTTL     time.Duration `help:"How long a recorder or trainer must have been silent before another one takes over." default:"10s" min:"100ms"`
}

// Validate checks the flags that no other package checks.
func (p *ProcessFlags) Validate() error {
	if p.RunName == "" {
		return nil // kong reports a missing flag
	}
	if err := events.ValidName(p.RunName); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	if err := events.ValidName(p.instance()); err != nil {
		return fmt.Errorf("--instance: %w", err)
	}
	return nil
}

func (p *ProcessFlags) instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return cmp.Or(p.Instance, fmt.Sprintf("%s-%d", host, os.Getpid()))
}

// newRunner returns a runner for the stage of this process.
func (p *ProcessFlags) newRunner(runsDir string, logger *slog.Logger) (*runner, error) {
	dir, err := filepath.Abs(filepath.Join(runsDir, p.RunName))
	if err != nil {
		return nil, err
	}
	return &runner{
		run: p.RunName, dir: dir, instance: p.instance(), waitForLease: true, leaseTTL: p.LeaseTTL,
		metrics: newMetrics(), logger: logger,
	}, nil
}

// openProbe serves the probe of the process at --probe-address, with the metrics of the
// process and those in more.
func (p *ProcessFlags) openProbe(ctx context.Context, r *runner, g *services.Group, more ...prometheus.Gatherer) error {
	if p.ProbeAddress == "" {
		return nil
	}
	var err error
	if r.probe, err = stage.ListenProbe(ctx, p.ProbeAddress, append(prometheus.Gatherers{r.metrics}, more...)); err != nil {
		return fmt.Errorf("--probe-address: %w", err)
	}
	g.Go(r.probe.Serve)
	return nil
}

// joinBus connects to the bus of a run, under the name of the run and the stage.
func joinBus(ctx context.Context, bus *connect.Flags, run string, flags *kong.Context, logger *slog.Logger) (events.Broker, error) {
	if bus.URL == connect.Embedded {
		return nil, errors.New("--bus: a stage in a separate process needs a server that all processes reach: nats://HOST:PORT or kafka://HOST:PORT")
	}
	name := flags.Selected().Name
	joined, err := bus.Join(ctx, fmt.Sprintf("codea1-%s-%s", run, name), logger.With("part", "bus"))
	if err == nil {
		logger.Info("joined the bus", "stage", name, "run", run, "bus", connect.PublicURL(bus.URL))
	}
	return joined, err
}
