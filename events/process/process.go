package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"codea1/events"
	"codea1/events/services"
	"codea1/events/stage"
)

const (
	// HeartbeatEvery is the time between two heartbeats of a stage.
	HeartbeatEvery = 5 * time.Second
	// DefaultLeaseTTL is the time between the death of a lease's owner and the
	// end of its lease.
	DefaultLeaseTTL = 10 * time.Second
)

// Process owns the resources that the stages of a run share in this process.
type Process struct {
	Run          string        // name on the bus
	Dir          string        // run directory, absolute
	Instance     string        // tells the replicas of a stage apart
	Alone        bool          // no other process takes part in the run: leases are not needed
	WaitForLease bool          // wait until the owner of a lease ends
	LeaseTTL     time.Duration // a lease ends when its owner is silent for this time
	Bus          events.Broker
	Metrics      *prometheus.Registry
	Probe        *stage.Probe // nil disables it
	Logger       *slog.Logger

	// Set before the first worker starts.
	Models   events.Models // of the run
	Delivery stage.Flags

	closers []func() error // in the order of opening
}

// OnClose adds a function for Close to call.
func (p *Process) OnClose(closer func() error) { p.closers = append(p.closers, closer) }

// Close releases the resources in the reverse order of opening.
func (p *Process) Close() error {
	var errs []error
	for _, c := range slices.Backward(p.closers) {
		errs = append(errs, c())
	}
	p.closers = nil
	return errors.Join(errs...)
}

// Source returns the source of the events that a stage makes in this process.
func (p *Process) Source(stage string) string { return stage + "-" + p.Instance }

// Lease takes the lease of a stage until the process closes. The services fail
// when another process has taken it.
func (p *Process) Lease(ctx context.Context, g *services.Group, name string) (events.Lease, error) {
	if p.Alone {
		return soleLease{}, nil
	}
	lease, err := p.Bus.Lease(ctx, events.LeaseConfig{Run: p.Run, Name: name, Owner: p.Instance, TTL: p.LeaseTTL, Wait: p.WaitForLease})
	if err != nil {
		return nil, err
	}
	p.OnClose(lease.Close)
	g.Go(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-lease.Lost():
			return fmt.Errorf("%s of run %s: %w", name, p.Run, events.ErrLeaseLost)
		}
	})
	return lease, nil
}

// soleLease is the lease of a process that no other process can compete with.
type soleLease struct{}

func (soleLease) Confirm(context.Context) error { return nil }
func (soleLease) Lost() <-chan struct{}         { return nil }
func (soleLease) Close() error                  { return nil }

// FirstCounts is a bus for stages that go on when another payload is stored under the
// ID of their event: the stored one counts, and the following stages use it.
type FirstCounts struct {
	events.Broker
	Logger *slog.Logger
}

// Publish implements events.Bus.
func (b FirstCounts) Publish(ctx context.Context, messages ...events.Message) error {
	err := b.Broker.Publish(ctx, messages...)
	if errors.Is(err, events.ErrForeignEvent) {
		b.Logger.Warn("another event counts", "error", err)
		return nil
	}
	return err
}

// PublishInTurn publishes an event of the run's course. sure is that of
// events.PublishInTurn.
func (p *Process) PublishInTurn(ctx context.Context, group string, sure bool, payload events.Payload) error {
	m, err := events.Encode(events.New(p.Run, group, "main", time.Now(), payload))
	if err != nil {
		return err
	}
	err = events.PublishInTurn(ctx, m, sure, p.Bus.Publish, p.Bus.Read)
	if errors.Is(err, events.ErrForeignEvent) {
		p.Logger.Warn("another event counts", "error", err)
		return nil
	}
	return err
}

// Serve runs a service, watched by the probe.
func (p *Process) Serve(g *services.Group, name string, run func(context.Context) error) {
	if p.Probe != nil {
		run = p.Probe.Service(name, run)
	}
	g.Go(run)
}

// NewMetrics returns the metrics of this process, with those of Go and of its build.
func NewMetrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return r
}
