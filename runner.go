package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events"
	"codea1/events/outbox"
	"codea1/events/rundir"
	"codea1/events/services"
	"codea1/events/stage"
	"codea1/gpuworker"
)

const (
	heartbeatEvery = 5 * time.Second
	// defaultLeaseTTL is the time between the death of a lease's owner and the
	// end of its lease.
	defaultLeaseTTL = 10 * time.Second
	// maxReplicas bounds the replicas of a stage that share a run directory:
	// each has its own outbox there.
	maxReplicas = 256
)

// runner starts the stages of a run in this process: all of them under train,
// one under stage. It owns the resources that they share.
type runner struct {
	run          string       // name on the bus
	dir          string       // run directory, absolute
	settings     *RunSettings // of the run
	problems     int          // training problems
	instance     string       // tells the replicas of a stage apart
	alone        bool         // no other process takes part in the run: leases are not needed
	waitForLease bool         // wait until the owner of a lease ends
	leaseTTL     time.Duration
	bus          events.Broker
	pool         *sandbox.Pool // nil until openPool
	metrics      *prometheus.Registry
	probe        *stage.Probe // nil disables it
	logger       *slog.Logger

	engines  map[events.Role]engine // that the stages of a role share
	samplers map[events.Role]engine // of rollouts on another device
	turns    *gpuworker.Turns       // of the trainers of both roles, where they share a device
	closers  []func() error         // in the order of opening
}

// onClose adds a function for close to call.
func (r *runner) onClose(closer func() error) { r.closers = append(r.closers, closer) }

// close releases the resources in the reverse order of opening.
func (r *runner) close() error {
	var errs []error
	for _, c := range slices.Backward(r.closers) {
		errs = append(errs, c())
	}
	r.closers = nil
	return errors.Join(errs...)
}

// source returns the source of the events that a stage makes in this process.
func (r *runner) source(stage string) string { return stage + "-" + r.instance }

// firstCounts is a bus for stages that go on when another payload is stored under the
// ID of their event: the stored one counts, and the following stages use it.
type firstCounts struct {
	events.Broker
	logger *slog.Logger
}

// Publish implements events.Bus.
func (b firstCounts) Publish(ctx context.Context, messages ...events.Message) error {
	err := b.Broker.Publish(ctx, messages...)
	if errors.Is(err, events.ErrForeignEvent) {
		b.logger.Warn("another event counts", "error", err)
		return nil
	}
	return err
}

// publishInTurn publishes an event of the run's course. sure is that of
// events.PublishInTurn.
func (r *runner) publishInTurn(ctx context.Context, group string, sure bool, payload events.Payload) error {
	m, err := events.Encode(events.New(r.run, group, "main", time.Now(), payload))
	if err != nil {
		return err
	}
	err = events.PublishInTurn(ctx, m, sure, r.bus.Publish, r.bus.Read)
	if errors.Is(err, events.ErrForeignEvent) {
		r.logger.Warn("another event counts", "error", err)
		return nil
	}
	return err
}

// openPool starts the sandbox, once.
func (r *runner) openPool(ctx context.Context) error {
	if r.pool != nil {
		return nil
	}
	pool, err := sandboxfusion.Open(ctx, &r.settings.Sandbox, r.logger.With("stage", events.StageExecution))
	if err != nil {
		return err
	}
	r.pool = pool
	r.onClose(pool.Close)
	return pool.Register(r.metrics)
}

// openOutbox opens the first outbox of a stage that no other replica has open.
// A replica that starts takes over the outbox of one that died, and publishes
// its outputs.
func (r *runner) openOutbox(name string) (*outbox.Outbox, error) {
	for n := range maxReplicas {
		box, err := outbox.Open(rundir.Outbox(r.dir, name, n), outbox.Options{Logger: r.logger.With("outbox", name)})
		if errors.Is(err, outbox.ErrInUse) {
			continue
		}
		if err == nil {
			r.onClose(box.Close)
		}
		return box, err
	}
	return nil, fmt.Errorf("%d replicas of %s have an outbox in %s already; more are not supported", maxReplicas, name, r.dir)
}

// lease takes the lease of a stage until the runner closes. The services fail
// when another process has taken it.
func (r *runner) lease(ctx context.Context, g *services.Group, name string) (events.Lease, error) {
	if r.alone {
		return soleLease{}, nil
	}
	lease, err := r.bus.Lease(ctx, events.LeaseConfig{Run: r.run, Name: name, Owner: r.instance, TTL: r.leaseTTL, Wait: r.waitForLease})
	if err != nil {
		return nil, err
	}
	r.onClose(lease.Close)
	g.Go(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-lease.Lost():
			return fmt.Errorf("%s of run %s: %w", name, r.run, events.ErrLeaseLost)
		}
	})
	return lease, nil
}

// soleLease is the lease of a process that no other process can compete with.
type soleLease struct{}

func (soleLease) Confirm(context.Context) error { return nil }
func (soleLease) Lost() <-chan struct{}         { return nil }
func (soleLease) Close() error                  { return nil }

// identify sets how a stage appears on the bus, in metrics and in the log.
func (r *runner) identify(config *stage.Config) {
	config.Logger, config.Registerer = r.logger.With("stage", config.Name), r.metrics
	config.Bus, config.Run, config.Instance = firstCounts{r.bus, config.Logger}, r.run, r.instance
	config.HeartbeatEvery = heartbeatEvery
}

// meter returns the meter of a stage that is no worker.
func (r *runner) meter(name string) (*stage.Meter, error) {
	config := stage.Config{Name: name}
	r.identify(&config)
	return stage.NewMeter(config)
}

// startWorker starts a worker, which consumes the events that the topology says.
func (r *runner) startWorker(g *services.Group, config stage.Config) error {
	worker, ok := r.settings.models().Stage(config.Name)
	if !ok {
		return fmt.Errorf("the run has no stage %s", config.Name)
	}
	config.Types = worker.Consumes
	r.identify(&config)
	config.AckWait, config.HoldDeadLetters = r.settings.Delivery.AckWait, r.settings.Delivery.HoldDeadLetters
	running, err := stage.New(config)
	if err != nil {
		return err
	}
	if r.probe != nil {
		r.probe.Watch(config.Name, running.Health)
	}
	g.Go(running.Run)
	return nil
}

// serve runs a service, watched by the probe.
func (r *runner) serve(g *services.Group, name string, run func(context.Context) error) {
	if r.probe != nil {
		run = r.probe.Service(name, run)
	}
	g.Go(run)
}

// newMetrics returns the metrics of this process, with those of Go and of its build.
func newMetrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return r
}
