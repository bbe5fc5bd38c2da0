package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/connect"
	"codea1/events/services"
	"codea1/events/stage"
)

// Flags are the flags of every process with one stage.
type Flags struct {
	RunName      string        `name:"run" help:"Name of the run." required:"" placeholder:"RUN"`
	Instance     string        `help:"Name of this process among the replicas of its stage; the host and the process ID by default." placeholder:"NAME"`
	ProbeAddress string        `help:"Address for /metrics and /healthz, which answer everyone with access to it; none by default." placeholder:"HOST:PORT"`
	LeaseTTL     time.Duration `help:"How long a recorder or trainer must have been silent before another one takes over." default:"10s" min:"100ms"`
}

// StageFlags are the flags of a stage that takes the settings of the run from run.started.
type StageFlags struct {
	Flags
	RunsDir string        `yaml:"runs-dir" help:"Directory that holds the run directories; rollouts and trainers share it with the recorder." default:"runs" placeholder:"DIR"`
	Bus     connect.Flags `embed:"" yaml:",inline" group:"Message bus"`
}

// Validate checks the flags that no other package checks.
func (f *Flags) Validate() error {
	if f.RunName == "" {
		return nil // kong reports a missing flag
	}
	if err := events.ValidName(f.RunName); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	if err := events.ValidName(f.instance()); err != nil {
		return fmt.Errorf("--instance: %w", err)
	}
	return nil
}

func (f *Flags) instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return cmp.Or(f.Instance, fmt.Sprintf("%s-%d", host, os.Getpid()))
}

// New returns the process of one stage, without a bus.
func (f *Flags) New(runsDir string, logger *slog.Logger) (*Process, error) {
	dir, err := filepath.Abs(filepath.Join(runsDir, f.RunName))
	if err != nil {
		return nil, err
	}
	return &Process{
		Run: f.RunName, Dir: dir, Instance: f.instance(), WaitForLease: true, LeaseTTL: f.LeaseTTL,
		Metrics: NewMetrics(), Logger: logger,
	}, nil
}

// OpenProbe serves the probe of the process at --probe-address, with the metrics of the
// process and those in more.
func (f *Flags) OpenProbe(ctx context.Context, p *Process, g *services.Group, more ...prometheus.Gatherer) error {
	if f.ProbeAddress == "" {
		return nil
	}
	var err error
	if p.Probe, err = stage.ListenProbe(ctx, f.ProbeAddress, append(prometheus.Gatherers{p.Metrics}, more...)); err != nil {
		return fmt.Errorf("--probe-address: %w", err)
	}
	g.Go(p.Probe.Serve)
	return nil
}

// Join connects to the bus of the run, under the name of the run and the stage.
func (f *Flags) Join(ctx context.Context, bus *connect.Flags, stage string, logger *slog.Logger) (events.Broker, error) {
	if bus.URL == connect.Embedded {
		return nil, errors.New("--bus: a stage in a separate process needs a server that all processes reach: nats://HOST:PORT or kafka://HOST:PORT")
	}
	joined, err := bus.Join(ctx, fmt.Sprintf("codea1-%s-%s", f.RunName, stage), logger.With("part", "bus"))
	if err == nil {
		logger.Info("joined the bus", "stage", stage, "run", f.RunName, "bus", connect.PublicURL(bus.URL))
	}
	return joined, err
}
