package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/consumers/dashboard"
	"codea1/consumers/evaluation"
	"codea1/consumers/execution"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/natsbus"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
	"codea1/producers/curriculum"
	"codea1/producers/problems"
	"codea1/replay"
)

// trainingRun is a run with everything it holds open.
type trainingRun struct {
	flags  *TrainCommand
	dir    string // the run directory, absolute
	name   string // its last element; names the run on the bus
	logger *slog.Logger

	recipe     rewards.Recipe
	curriculum *curriculum.Curriculum
	problems   int // training problems
	start      map[events.Role]events.Checkpoint
	pool       *execution.Pool
	views      *dashboard.Follower
	page       *dashboard.Server // nil without a live page
	metrics    *prometheus.Registry
	bus        events.Bus
	server     *natsbus.Server // nil with an external bus
	log        *replay.Log

	closers []func() error // in the order of opening
}

// openRun opens the parts of a run that can be wrong, the quick ones first, so
// that a mistake costs no time and leaves nothing behind but its directory.
func openRun(ctx context.Context, flags *TrainCommand, dir string, logger *slog.Logger) (r *trainingRun, err error) {
	r = &trainingRun{flags: flags, dir: dir, name: filepath.Base(dir), logger: logger, start: map[events.Role]events.Checkpoint{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.recipe, err = rewards.New(flags.Reward, flags.Alpha); err != nil {
		return r, err
	}
	r.pool, err = execution.Open(ctx, flags.Sandbox.Config(logger.With("stage", "execution")))
	if err != nil {
		return r, err
	}
	r.closers = append(r.closers, r.pool.Close)
	training, evals, err := r.loadProblems(ctx)
	if err != nil {
		return r, err
	}
	for role, from := range map[events.Role]string{events.RoleCode: flags.CodeModel, events.RoleTest: flags.TestModel} {
		if r.start[role], err = r.startingPoint(ctx, role, from); err != nil {
			return r, err
		}
	}
	if r.log, err = replay.Open(logPath(dir), replay.Options{Logger: logger.With("part", "log")}); err != nil {
		return r, err
	}
	r.closers = append(r.closers, r.log.Close)
	if r.curriculum, err = curriculum.New(flags.schedule(len(training)), training, r.log.Book(), evals); err != nil {
		return r, err
	}
	r.problems = len(training)
	if err := r.openPage(ctx); err != nil {
		return r, err
	}
	return r, r.openBus(ctx)
}

// openPage takes the address of the live page, unless there shall be none.
func (r *trainingRun) openPage(ctx context.Context) (err error) {
	r.views, r.metrics = dashboard.NewFollower(), prometheus.NewRegistry()
	if err := r.pool.Register(r.metrics); err != nil {
		return err
	}
	if r.flags.Dashboard.Off {
		return nil
	}
	r.page, err = dashboard.Listen(ctx, dashboard.ServerConfig{Address: r.flags.Dashboard.Address, Follower: r.views, Gatherer: r.metrics})
	if err != nil {
		return err
	}
	r.closers = append(r.closers, func() error {
		if err := r.page.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil // Serve has given the address back
	})
	return nil
}

// close releases everything in the reverse order of opening.
func (r *trainingRun) close() error {
	var errs []error
	for _, c := range slices.Backward(r.closers) {
		errs = append(errs, c())
	}
	r.closers = nil
	return errors.Join(errs...)
}

// loadProblems returns the training problems and the evaluation made of the
// held-out ones.
func (r *trainingRun) loadProblems(ctx context.Context) ([]events.Problem, curriculum.Evaluation, error) {
	options := problems.LoadOptions{
		OnBadRow: problems.BadRowPolicy(r.flags.OnBadRow),
		Report:   func(bad *problems.BadRowError) { r.logger.Warn("row skipped", "error", bad) },
	}
	set, _, err := problems.ReadAll(ctx, r.flags.Problems, options)
	if err != nil {
		return nil, nil, err
	}
	training := make([]events.Problem, len(set))
	for i := range set {
		training[i] = r.posable(&set[i]) // the curriculum takes golden tests off where the recipe needs none
	}
	if n := r.flags.TrainProblems; n > 0 && n < len(training) {
		training = curriculum.Subset(training, n, r.flags.Seed)
	}
	if r.flags.Heldout == "" {
		return training, nil, nil
	}
	heldout, _, err := problems.ReadAll(ctx, r.flags.Heldout, options)
	if err != nil {
		return nil, nil, err
	}
	if n := r.flags.EvalProblems; n > 0 && n < len(heldout) {
		heldout = heldout[:n]
	}
	items := make([]evaluation.Item, len(heldout))
	for i := range heldout {
		items[i].Problem = r.posable(&heldout[i])
		for _, b := range heldout[i].Buggy {
			items[i].Buggy = append(items[i].Buggy, b.Code)
		}
	}
	config := r.flags.evaluation()
	groups, err := evaluation.Groups(curriculum.Tag(0), items, config)
	if err != nil {
		return nil, nil, err
	}
	return training, func(string) []events.ProblemPosed { return slices.Clone(groups) }, nil
}

// posable returns a problem with the golden tests that fit into an event.
func (r *trainingRun) posable(p *problems.Problem) events.Problem {
	posable, omitted := p.Posable(true)
	if omitted > 0 {
		r.logger.Warn("golden tests left out: too large for an event", "problem", p.ID, "tests", omitted)
	}
	return posable
}

// startingPoint returns the checkpoint of version 0, which it puts into the run
// directory first: a run must not change when the directory it started from
// does.
func (r *trainingRun) startingPoint(ctx context.Context, role events.Role, from string) (events.Checkpoint, error) {
	dir := startPath(r.dir, role)
	if _, err := os.Stat(dir); err == nil {
		return gpuworker.DescribeCheckpoint(ctx, dir)
	}
	source, err := r.checkpointFiles(role, from)
	if err != nil {
		return events.Checkpoint{}, err
	}
	// Renamed into place whole, so that a kill leaves no half of it.
	partial := dir + ".partial"
	if err := errors.Join(os.RemoveAll(partial), os.MkdirAll(partial, 0o755)); err != nil {
		return events.Checkpoint{}, fmt.Errorf("starting checkpoint: %w", err)
	}
	if err := tiny.WriteCheckpoint(source, partial); err != nil {
		return events.Checkpoint{}, fmt.Errorf("starting checkpoint %s: %w", from, err)
	}
	if err := os.Rename(partial, dir); err != nil {
		return events.Checkpoint{}, fmt.Errorf("starting checkpoint: %w", err)
	}
	return gpuworker.DescribeCheckpoint(ctx, dir)
}

// checkpointFiles returns the files of a checkpoint that the engine can open.
func (r *trainingRun) checkpointFiles(role events.Role, from string) (fs.FS, error) {
	if from == "" {
		return tiny.Checkpoint(string(role))
	}
	engine, err := tiny.Open(from, tiny.Options{})
	if err != nil {
		return nil, fmt.Errorf("--%s-model: %w", role, err)
	}
	return os.DirFS(from), engine.Close()
}

// attempt returns the number of this attempt at the run, from 1. It fails when
// the run no longer has the checkpoints it started from: training on would give
// another run than the one that was started.
func (r *trainingRun) attempt(ctx context.Context) (int, error) {
	n := 1
	for record, err := range r.log.Scan(ctx, replay.ScanOptions{Types: []events.Type{events.TypeRunStarted}}) {
		if err != nil {
			return 0, err
		}
		n++
		e, err := record.Decode()
		if err != nil {
			return 0, err
		}
		started := e.Payload.(*events.RunStarted)
		for role, was := range map[events.Role]events.Checkpoint{events.RoleCode: started.Code, events.RoleTest: started.Test} {
			if was.SHA256 != r.start[role].SHA256 {
				return 0, fmt.Errorf("%s: model.safetensors is not the one the run started from (its SHA-256 was %s): put the original back, or start a new run",
					startPath(r.dir, role), was.SHA256)
			}
		}
	}
	return n, nil
}

// catchUp brings the curriculum to the end of the log.
func (r *trainingRun) catchUp(ctx context.Context, s *curriculum.Service) error {
	for record, err := range r.log.Scan(ctx, replay.ScanOptions{Types: curriculum.Types()}) {
		if err != nil {
			return err
		}
		if err := s.Observe([]events.Message{record.Message}); err != nil {
			return err
		}
	}
	return nil
}

// publish makes a root event of the run and publishes it.
func (r *trainingRun) publish(ctx context.Context, group string, payload events.Payload) error {
	m, err := events.Encode(events.New(r.name, group, "main", time.Now(), payload))
	if err != nil {
		return err
	}
	return r.bus.Publish(ctx, m)
}

// announce publishes run.started.
func (r *trainingRun) announce(ctx context.Context, attempt int) error {
	config, err := os.ReadFile(configPath(r.dir))
	if err != nil {
		return err
	}
	return r.publish(ctx, fmt.Sprintf("start-%04d", attempt), &events.RunStarted{
		Attempt: attempt, Steps: r.flags.steps(r.problems), Build: build(), Config: string(config),
		ProblemSet: r.flags.Problems, Problems: r.problems,
		Code: r.start[events.RoleCode], Test: r.start[events.RoleTest],
	})
}

// where says where the run is and how to look at it.
func (r *trainingRun) where(w io.Writer) {
	fmt.Fprintf(w, "run   %s\n", r.dir)
	if r.server != nil {
		fmt.Fprintf(w, "tap   nats sub -s %s 'codea1.>'\n", r.server.ClientURL())
	}
	if r.page != nil {
		fmt.Fprintf(w, "page  %s\n", r.page.URL())
	}
}

// again returns what --resume takes to find the run from here.
func (r *trainingRun) again() string {
	if dir, err := findRun(defaultRunsDir, r.name); err == nil && dir == r.dir {
		return r.name
	}
	return r.dir
}
