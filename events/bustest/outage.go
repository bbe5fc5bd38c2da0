package bustest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/eventstest"
)

// call is a call of a bus that a test makes in another goroutine.
type call struct {
	name  string
	ended chan error
}

// calling makes the calls at the same time.
func calling(calls map[string]func() error) []call {
	var all []call
	for name, do := range calls {
		c := call{name, make(chan error, 1)}
		all = append(all, c)
		go func() { c.ended <- do() }()
	}
	return all
}

// outage stops the service for a while under everything that a process does:
// open the bus, wait for a run, publish, consume, read, own a lease. All of it
// waits and goes on.
func (s *suite) outage(t *testing.T) {
	ctx, bus, run := s.startFor(t, restartTimeout)
	const half = 10
	list := posed(run, 2*half)
	publish(ctx, t, bus, list[:half]...)
	end := eventstest.Encode(events.New(run, "end", "a", eventstest.At, &events.RunFinished{Attempt: 1, Steps: 3, Reason: events.RunCompleted}))

	// A delivery that is lost with a connection comes again after AckWait.
	const ackWait = 2 * time.Second
	idle := consume(ctx, t, bus, events.ConsumeConfig{Run: run, Name: "idle", Types: []events.Type{end.Type}, AckWait: ackWait})
	busy := consume(ctx, t, bus, events.ConsumeConfig{Run: run, Name: "busy", AckWait: ackWait})
	held := fetch(ctx, t, busy, 1)[0]
	reader := read(ctx, t, bus, events.ReadConfig{Run: run, Types: []events.Type{list[0].Type}})
	owner := lease(ctx, t, bus, events.LeaseConfig{Run: run, TTL: aliveTTL})
	defer closeLease(t, owner)
	working := calling(map[string]func() error{
		"wait for a run": func() error {
			for {
				has, err := bus.HasRun(ctx, run+"-late")
				if has || err != nil {
					return err
				}
			}
		},
		"idle consumer": func() error {
			_, err := idle.Fetch(ctx, 1, 0)
			return err
		},
		"busy consumer": func() error {
			for handled := map[string]bool{}; len(handled) < 2*half; {
				_ = held.Ack(ctx) // may be lost
				handled[held.Message().ID] = true
				if len(handled) == 2*half {
					return nil
				}
				got, err := busy.Fetch(ctx, 1, 0)
				if err != nil {
					return err
				}
				held = got[0]
			}
			return nil
		},
		"publisher": func() error {
			for _, m := range list[half:] {
				if err := bus.Publish(ctx, m); err != nil {
					return err
				}
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		},
		"reader": func() error {
			for range list {
				m, _, err := reader.Next(ctx)
				if err != nil {
					return err
				}
				if i := slices.Index(idsOf(list), m.ID); i < 0 || !bytes.Equal(list[i].Data, m.Data) {
					return fmt.Errorf("read another event %s than was published", m.Group)
				}
			}
			return nil
		},
	})
	back := s.features.Outage(t)
	starting := calling(s.calls(ctx, bus, run))
	starting = append(starting, calling(map[string]func() error{"join": func() error {
		late, err := s.features.Join(ctx)
		if err == nil {
			err = errors.Join(late.Publish(ctx, eventstest.Encode(eventstest.Posed(run+"-late", 1, 0))), late.Close())
		}
		return err
	}})...)
	time.Sleep(300 * time.Millisecond) // some tries
	back()
	publish(ctx, t, bus, end)
	for _, c := range append(working, starting...) {
		if err := <-c.ended; err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	confirm(ctx, t, owner, nil)
	untilLag(ctx, t, bus, run, "idle", events.Lag{InFlight: 1})
}

// calls are calls that end at once while the service works.
func (s *suite) calls(ctx context.Context, bus events.Broker, run string) map[string]func() error {
	return map[string]func() error{
		"has run": func() error {
			has, err := bus.HasRun(ctx, run)
			if err == nil && !has {
				err = errors.New("the run is not found")
			}
			return err
		},
		"open a consumer": func() error {
			c, err := bus.Consume(ctx, events.ConsumeConfig{Run: run, Name: "new", Types: events.Types(), AckWait: longAckWait, MaxInFlight: 1})
			if err == nil {
				err = c.Close()
			}
			return err
		},
		"open a reader": func() error {
			r, err := bus.Read(ctx, events.ReadConfig{Run: run})
			if err == nil {
				err = r.Close()
			}
			return err
		},
		"lag": func() error {
			_, err := bus.Lag(ctx, run, "busy")
			return err
		},
		"dead letters": func() error {
			_, err := bus.DeadLetters(ctx, run)
			return err
		},
		"take a lease": func() error {
			l, err := bus.Lease(ctx, events.LeaseConfig{Run: run, Name: "new", Owner: "host:1", TTL: aliveTTL})
			if err == nil {
				err = l.Close()
			}
			return err
		},
		"publish": func() error { return bus.Publish(ctx, posed(run, 1)...) },
	}
}

// outageEnds checks that a process can be stopped during an outage: every call
// ends with its context.
func (s *suite) outageEnds(t *testing.T) {
	ctx, bus, run := s.startFor(t, restartTimeout)
	publish(ctx, t, bus, posed(run, 1)...)
	consume(ctx, t, bus, events.ConsumeConfig{Run: run, Name: "busy"})
	back := s.features.Outage(t)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	waiting := s.calls(short, bus, run)
	waiting["join"] = func() error {
		_, err := s.features.Join(short)
		return err
	}
	for _, c := range calling(waiting) {
		if err := <-c.ended; err != nil && !errors.Is(err, context.DeadlineExceeded) { // a client may know the answer
			t.Errorf("%s: %v", c.name, err)
		}
	}
	back()
	fresh, err := s.features.Join(ctx)
	if err != nil {
		t.Fatal(fmt.Errorf("after the outage: %w", err))
	}
	publish(ctx, t, fresh, posed(run, 2)...)
	if err := fresh.Close(); err != nil {
		t.Error(err)
	}
}
