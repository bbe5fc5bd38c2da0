package bustest

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"codea1/events"
)

// longTTL is longer than any test: a lease that changes its owner within it was
// given back.
const longTTL = 2 * testTimeout

// aliveTTL is long enough for an owner to renew in time on a busy machine. A
// test needs a third of it.
const aliveTTL = 5 * time.Second

// shortTTL is for tests that wait until an owner has not renewed in time.
const shortTTL = 500 * time.Millisecond

func lease(ctx context.Context, t *testing.T, bus events.Broker, config events.LeaseConfig) events.Lease {
	t.Helper()
	if config.Name == "" {
		config.Name = "log"
	}
	if config.Owner == "" {
		config.Owner = "host:1"
	}
	l, err := bus.Lease(ctx, config)
	if err != nil {
		t.Fatalf("lease: %v", err)
	}
	return l
}

func confirm(ctx context.Context, t *testing.T, l events.Lease, want error) {
	t.Helper()
	if err := l.Confirm(ctx); !errors.Is(err, want) {
		t.Errorf("confirm: %v, want %v", err, want)
	}
}

func closeLease(t *testing.T, l events.Lease) {
	t.Helper()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func (s *suite) leaseRefused(t *testing.T) {
	ctx, bus, run := s.start(t)
	began := time.Now().Add(-time.Second)
	first := lease(ctx, t, bus, events.LeaseConfig{Run: run, TTL: aliveTTL})
	defer closeLease(t, first)
	for _, b := range []events.Broker{bus, s.newBus(t)} {
		_, err := b.Lease(ctx, events.LeaseConfig{Run: run, Name: "log", Owner: "host:2", TTL: shortTTL})
		var leased *events.LeasedError
		if !errors.Is(err, events.ErrLeased) || !errors.As(err, &leased) {
			t.Fatalf("second lease: %v, want a LeasedError", err)
		}
		if leased.Owner != "host:1" || leased.Name != "log" || leased.Run != run ||
			leased.Since.Before(began) || leased.Since.After(time.Now().Add(time.Second)) {
			t.Errorf("refused with %+v", leased)
		}
		if !strings.Contains(err.Error(), "host:1") {
			t.Errorf("%q does not name the owner", err)
		}
		confirm(ctx, t, first, nil)
	}
	select {
	case <-first.Lost():
		t.Error("a lease that is held is lost")
	default:
	}
	closeLease(t, lease(ctx, t, bus, events.LeaseConfig{Run: run, Name: events.StageTrainerCode, TTL: longTTL}))
	closeLease(t, lease(ctx, t, bus, events.LeaseConfig{Run: run + "-b", TTL: longTTL}))
}

func (s *suite) leaseAfterClose(t *testing.T) {
	ctx, bus, run := s.start(t)
	config := events.LeaseConfig{Run: run, TTL: longTTL, Wait: true}
	first := lease(ctx, t, bus, config)
	type result struct {
		events.Lease
		error
	}
	taken := make(chan result, 1)
	standby := s.newBus(t)
	go func() {
		l, err := standby.Lease(ctx, events.LeaseConfig{Run: run, Name: "log", Owner: "host:2", TTL: longTTL, Wait: true})
		taken <- result{l, err}
	}()
	time.Sleep(50 * time.Millisecond) // usually it waits by now; in any case it must wait for the end
	select {
	case r := <-taken:
		t.Fatalf("a second owner beside the first: %v", r.error)
	default:
	}
	confirm(ctx, t, first, nil)
	closeLease(t, first)
	confirm(ctx, t, first, events.ErrClosed)
	<-first.Lost()
	second := <-taken
	if second.error != nil {
		t.Fatal(second.error)
	}
	confirm(ctx, t, second, nil)
	closeLease(t, second)
	closeLease(t, lease(ctx, t, bus, events.LeaseConfig{Run: run, TTL: longTTL}))
}

// leaseOfClosedBus checks that a bus gives its leases back when it is closed.
func (s *suite) leaseOfClosedBus(t *testing.T) {
	ctx, bus, run := s.start(t)
	owner := s.newBus(t)
	first := lease(ctx, t, owner, events.LeaseConfig{Run: run, TTL: longTTL})
	waiting := make(chan error, 1)
	go func() {
		_, err := owner.Lease(ctx, events.LeaseConfig{Run: run, Name: "log", Owner: "host:2", TTL: longTTL, Wait: true})
		waiting <- err
	}()
	time.Sleep(20 * time.Millisecond) // usually it waits by now; in any case it must end
	if err := owner.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waiting; !errors.Is(err, events.ErrClosed) {
		t.Errorf("lease of a closed bus: %v, want ErrClosed", err)
	}
	confirm(ctx, t, first, events.ErrClosed)
	closeLease(t, lease(ctx, t, bus, events.LeaseConfig{Run: run, TTL: longTTL}))
}

func (s *suite) leaseWaitEnds(t *testing.T) {
	ctx, bus, run := s.start(t)
	defer closeLease(t, lease(ctx, t, bus, events.LeaseConfig{Run: run, TTL: longTTL}))
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := s.newBus(t).Lease(short, events.LeaseConfig{Run: run, Name: "log", Owner: "host:2", TTL: longTTL, Wait: true})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("lease: %v, want context.DeadlineExceeded", err)
	}
}

func (s *suite) leaseOfKilledOwner(t *testing.T) {
	ctx, bus, run := s.start(t)
	child := s.owner(ctx, t, run, shortTTL)
	child.confirm()
	child.want("confirmed")
	child.signal(syscall.SIGKILL)
	closeLease(t, lease(ctx, t, bus, events.LeaseConfig{Run: run, TTL: shortTTL}))
}

// leaseOfStoppedOwner stops an owner for longer than its TTL. Afterwards it
// confirms first.
func (s *suite) leaseOfStoppedOwner(t *testing.T) {
	ctx, bus, run := s.start(t)
	child := s.owner(ctx, t, run, shortTTL)
	child.signal(syscall.SIGSTOP)
	time.Sleep(2 * shortTTL)
	// No other client wanted the lease: it still is the owner.
	child.confirm()
	child.signal(syscall.SIGCONT)
	child.want("confirmed")

	child.signal(syscall.SIGSTOP)
	second := lease(ctx, t, bus, events.LeaseConfig{Run: run, TTL: shortTTL})
	defer closeLease(t, second)
	child.confirm()
	child.signal(syscall.SIGCONT)
	child.want("lost")
	confirm(ctx, t, second, nil)
}

func (s *suite) badLease(t *testing.T) {
	ctx, bus, run := s.start(t)
	for _, change := range []func(*events.LeaseConfig){
		func(c *events.LeaseConfig) { c.Run = "a.b" },
		func(c *events.LeaseConfig) { c.Name = "" },
		func(c *events.LeaseConfig) { c.Owner = "" },
		func(c *events.LeaseConfig) { c.TTL = events.MinLeaseTTL - 1 },
	} {
		config := events.LeaseConfig{Run: run, Name: "log", Owner: "host:1", TTL: time.Second}
		change(&config)
		_, err := bus.Lease(ctx, config)
		var field *events.FieldError
		if !errors.As(err, &field) {
			t.Errorf("lease %+v: %v, want a FieldError", config, err)
		}
	}
}

// restartKeepsLease stops the service for a part of the TTL, and for longer
// than the TTL.
func (s *suite) restartKeepsLease(t *testing.T) {
	ctx, bus, run := s.startFor(t, restartTimeout)
	for _, ttl := range []time.Duration{events.MinLeaseTTL, aliveTTL} {
		// A waiting client waits until the last outage has ended, too.
		l := lease(ctx, t, bus, events.LeaseConfig{Run: run, TTL: ttl, Wait: true})
		s.features.Outage(t)()
		confirm(ctx, t, l, nil)
		if ttl == aliveTTL {
			if _, err := s.newBus(t).Lease(ctx, events.LeaseConfig{Run: run, Name: "log", Owner: "host:2", TTL: ttl}); !errors.Is(err, events.ErrLeased) {
				t.Errorf("second lease: %v, want ErrLeased", err)
			}
		}
		closeLease(t, l)
	}
}
