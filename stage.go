package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"

	"codea1/consumers/dashboard"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
	"codea1/events/connect"
	"codea1/events/settings"
	"codea1/events/stage"
)

// StageCommand is `codea1 stage`: one stage of a run in a process of its own.
// What a run is, its recorder says; the others take it from run.started.
type StageCommand struct {
	Recorder    RecorderStage  `cmd:"" help:"Begin or go on with a run: keep its event log and Mistake Book, and pose the questions. One per run; another one waits for its end."`
	RolloutCode WorkerStage    `cmd:"" name:"rollout-code" help:"Sample answers from the Code LLM."`
	RolloutTest WorkerStage    `cmd:"" name:"rollout-test" help:"Sample test suites from the Test LLM."`
	Execution   ExecutionStage `cmd:"" help:"Run the tests on the answers, in the sandbox."`
	Rewards     WorkerStage    `cmd:"" help:"Turn verdicts into rewards."`
	Evaluation  WorkerStage    `cmd:"" help:"Score the held-out problems."`
	TrainerCode WorkerStage    `cmd:"" name:"trainer-code" help:"Train the Code LLM. One per run; another one waits for its end."`
	TrainerTest WorkerStage    `cmd:"" name:"trainer-test" help:"Train the Test LLM. One per run; another one waits for its end."`
	Dashboard   DashboardStage `cmd:"" help:"Show the run on a page, and write its report once it is completed."`
}

// workerStages start what a worker's process holds, by the stage's name.
var workerStages = map[string]func(context.Context, *station, *circle) error{
	events.StageRolloutCode: func(_ context.Context, s *station, c *circle) error { return s.startRollout(c, events.RoleCode) },
	events.StageRolloutTest: func(_ context.Context, s *station, c *circle) error { return s.startRollout(c, events.RoleTest) },
	events.StageTrainerCode: func(ctx context.Context, s *station, c *circle) error { return s.startTrainer(ctx, c, events.RoleCode) },
	events.StageTrainerTest: func(ctx context.Context, s *station, c *circle) error { return s.startTrainer(ctx, c, events.RoleTest) },
	events.StageExecution: func(ctx context.Context, s *station, c *circle) error {
		pool, err := s.openPool(ctx)
		if err != nil {
			return err
		}
		return s.startExecution(c, pool)
	},
	events.StageRewards:    func(_ context.Context, s *station, c *circle) error { return s.startRewards(c) },
	events.StageEvaluation: func(_ context.Context, s *station, c *circle) error { return s.startEvaluation(c) },
}

// ProcessFlags are those of every process that holds one stage.
type ProcessFlags struct {
	RunName      string        `name:"run" help:"Name of the run." required:"" placeholder:"RUN"`
	Instance     string        `help:"Name of this process among those of its stage; by default host and process." placeholder:"NAME"`
	ProbeAddress string        `help:"Where to answer /metrics and /healthz, to everyone who reaches it; by default nowhere." placeholder:"HOST:PORT"`
	LeaseTTL     time.Duration `help:"How long recorder or trainer must not have been heard of before another one takes over." default:"10s"`
}

// station returns what the process gives to its stage.
func (p *ProcessFlags) station(runsDir string, logger *slog.Logger) (*station, error) {
	dir, err := filepath.Abs(filepath.Join(runsDir, p.RunName))
	if err != nil {
		return nil, err
	}
	return &station{
		run: p.RunName, dir: dir, instance: p.instance(), patient: true, leaseTTL: p.LeaseTTL,
		metrics: prometheus.NewRegistry(), logger: logger,
	}, nil
}

func (p *ProcessFlags) instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return cmp.Or(p.Instance, fmt.Sprintf("%s-%d", host, os.Getpid()))
}

// Validate checks what no other package does.
func (p *ProcessFlags) Validate() error {
	if p.RunName == "" {
		return nil // a missing flag is told as such
	}
	if err := events.ValidName(p.RunName); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	if err := events.ValidName(p.instance()); err != nil {
		return fmt.Errorf("--instance: %w", err)
	}
	if p.LeaseTTL < events.MinLeaseTTL {
		return fmt.Errorf("--lease-ttl is %v; want %v or more", p.LeaseTTL, events.MinLeaseTTL)
	}
	return nil
}

// openProbe answers for the process where --probe-address says.
func (s *station) openProbe(ctx context.Context, c *circle, address string) error {
	if address == "" {
		return nil
	}
	var err error
	if s.probe, err = stage.ListenProbe(ctx, address, s.metrics); err != nil {
		return fmt.Errorf("--probe-address: %w", err)
	}
	c.Go(s.probe.Serve)
	return nil
}

// WorkerStage is a stage that takes what the run is from run.started.
type WorkerStage struct {
	ProcessFlags
	RunsDir string        `yaml:"runs-dir" help:"Directory that holds the run directories; rollouts and trainers share it with the recorder." default:"runs" placeholder:"DIR"`
	Bus     connect.Flags `embed:"" yaml:",inline" group:"Message bus"`
}

// Run holds the stage until the run is completed or ctx ends. Where the run
// goes on with another configuration, the stage starts again.
func (w *WorkerStage) Run(ctx context.Context, flags *kong.Context, logger *slog.Logger) (err error) {
	bus, err := joinBus(ctx, &w.Bus, w.RunName, flags, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	if err := awaitRun(ctx, bus, w.RunName, logger); err != nil {
		return unlessEnded(ctx, err)
	}
	following, stopFollowing := newCircle(ctx)
	defer func() { err = errors.Join(err, stopFollowing()) }()
	attempts := newAttempts(w.RunName)
	following.Go(func(ctx context.Context) error { return attempts.follow(ctx, bus) })
	for {
		now, err := attempts.settled(following.ctx)
		if err != nil {
			return unlessEnded(following.ctx, err)
		}
		if now.completed {
			logger.Info("the run is completed", "run", w.RunName)
			return nil
		}
		if err := w.hold(following.ctx, flags, now.started, attempts, bus, logger); !errors.Is(err, errGoesOnOtherwise) {
			return err
		}
	}
}

// joinBus connects to the bus of a run, under a name that says who this is.
func joinBus(ctx context.Context, bus *connect.Flags, run string, flags *kong.Context, logger *slog.Logger) (events.Broker, error) {
	if bus.URL == connect.Embedded {
		return nil, errors.New("--bus: a stage in a process of its own needs a server that the others reach too: nats://HOST:PORT or kafka://HOST:PORT")
	}
	joined, err := bus.Open(ctx, fmt.Sprintf("codea1-%s-%s", run, flags.Selected().Name), logger.With("part", "bus"))
	if err == nil {
		logger.Info("joined the bus", "stage", flags.Selected().Name, "run", run, "bus", connect.PublicURL(bus.URL))
	}
	return joined, err
}

// runPoll is how often a bus is asked whether a run has begun.
const runPoll = 500 * time.Millisecond

// awaitRun waits until a run has begun: how the bus keeps it, on how many nodes
// and with which limits, is for its recorder to say, and a name that is none must
// leave nothing there.
func awaitRun(ctx context.Context, bus events.Broker, run string, logger *slog.Logger) error {
	for said := false; ; said = true {
		has, err := bus.HasRun(ctx, run)
		if err != nil || has {
			return err
		}
		if !said {
			logger.Info("the run has not begun, waits for its recorder", "run", run)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(runPoll):
		}
	}
}

// hold runs the stage as an attempt at the run wants it, until the run is
// completed, goes on otherwise (errGoesOnOtherwise), or ctx ends.
func (w *WorkerStage) hold(ctx context.Context, flags *kong.Context, started *events.RunStarted, attempts *attempts, bus events.Broker, logger *slog.Logger) (err error) {
	s, err := w.station(w.RunsDir, logger)
	if err != nil {
		return err
	}
	s.bus = bus
	defer func() { err = errors.Join(err, s.close()) }()
	if s.settings, err = workerSettings(flags, flags.Selected().Target.Addr().Interface(), started); err != nil {
		return err
	}
	s.problems = started.Problems
	c, stop := newCircle(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	if err := s.openProbe(ctx, c, w.ProbeAddress); err != nil {
		return err
	}
	logger.Info("begins to work", "run", w.RunName, "attempt", started.Attempt, "instance", s.instance)
	start := workerStages[flags.Selected().Name]
	c.Go(func(ctx context.Context) error { return start(ctx, s, c) })
	return unlessEnded(c.ctx, attempts.outlast(c.ctx, started))
}

// workerSettings returns the settings in a run.started, with those above them
// that this machine's environment and command line give. own is the worker's
// command, whose flags the context has.
func workerSettings(flags *kong.Context, own any, started *events.RunStarted) (*RunSettings, error) {
	base, err := startedSettings(started.Config)
	if err != nil {
		return nil, fmt.Errorf("run.started of attempt %d: %w", started.Attempt, err)
	}
	var now RunSettings
	if err := settings.Resolve(&now, &base.RunSettings, envPrefix); err != nil {
		return nil, err
	}
	settings.Copy(&now, own, func(f *settings.Field) bool { return settings.OnCommandLine(flags, f.Key) })
	variable := func(key string) string { return settings.Variable(envPrefix, key) }
	if err := unchanged(&base.RunSettings, &now, variable); err != nil {
		return nil, err
	}
	return &now, now.validate(variable)
}

// unlessEnded returns err, or nil when it is only that ctx has ended. Why the
// context of a circle has ended, stopping the circle says.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// ExecutionStage is the execution stage with what is this machine's about it.
type ExecutionStage struct {
	WorkerStage `yaml:",inline"`
	Sandbox     sandbox.Flags `embed:"" yaml:",inline" group:"Sandbox"`
}

// DashboardStage shows a run.
type DashboardStage struct {
	WorkerStage
	Dashboard dashboard.Flags `embed:""`
}

// Run shows the run until ctx ends.
func (d *DashboardStage) Run(ctx context.Context, flags *kong.Context, logger *slog.Logger) (err error) {
	s, err := d.station(d.RunsDir, logger)
	if err != nil {
		return err
	}
	if s.bus, err = joinBus(ctx, &d.Bus, d.RunName, flags, logger); err != nil {
		return err
	}
	s.owns(s.bus.Close)
	defer func() { err = errors.Join(err, s.close()) }()
	views := dashboard.NewFollower()
	page, err := listenPage(ctx, d.Dashboard.Address, views, s)
	if err != nil {
		return err
	}
	c, stop := newCircle(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	if err := s.openProbe(ctx, c, d.ProbeAddress); err != nil {
		return err
	}
	fmt.Fprintf(flags.Stderr, "page  %s\n", page.URL())
	s.serve(c, events.StageDashboard, func(ctx context.Context) error {
		if err := awaitRun(ctx, s.bus, d.RunName, logger); err != nil {
			return err
		}
		return views.Follow(ctx, s.bus, d.RunName, events.Start)
	})
	c.Go(page.Serve)
	c.Go(func(ctx context.Context) error { return s.report(ctx, views) })
	<-c.Done()
	return nil
}

// report writes the report of the run into its directory, where this machine
// has it, whenever the run is completed.
func (s *station) report(ctx context.Context, views *dashboard.Follower) error {
	for attempt := 0; ; {
		err := views.Wait(ctx, func(now *dashboard.State) bool { return now.Finished == events.RunCompleted && now.Attempt > attempt })
		if err != nil {
			return err
		}
		views.View(func(now *dashboard.State) {
			attempt = now.Attempt
			if _, gone := os.Stat(s.dir); gone == nil {
				err = dashboard.SaveReport(reportPath(s.dir), now)
			}
		})
		if err != nil {
			s.logger.Warn("report not written", "error", err)
		}
	}
}
