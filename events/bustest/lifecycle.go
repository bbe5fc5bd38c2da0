package bustest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

func (s *suite) closeEndsEverything(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 2)
	publish(ctx, t, bus, list...)
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run})
	held := fetch(ctx, t, c, 2)
	r := read(ctx, t, bus, events.ReadConfig{Run: run, Types: []events.Type{events.TypeRunFinished}})
	blocked := make(chan error, 2)
	go func() {
		_, err := c.Fetch(ctx, 1, 0)
		blocked <- err
	}()
	go func() {
		_, _, err := r.Next(ctx)
		blocked <- err
	}()
	time.Sleep(20 * time.Millisecond) // usually they block by now; in any case they must end
	if err := held[0].Ack(ctx); err != nil {
		t.Fatal(err)
	}
	if err := bus.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	for range 2 {
		if err := <-blocked; !errors.Is(err, events.ErrClosed) {
			t.Errorf("blocked call: %v, want ErrClosed", err)
		}
	}
	closed := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, events.ErrClosed) {
			t.Errorf("%s on a closed bus: %v, want ErrClosed", what, err)
		}
	}
	closed("publish", bus.Publish(ctx, list[0]))
	_, err := bus.Consume(ctx, events.ConsumeConfig{Run: run, Name: "worker", Types: events.Types(), AckWait: time.Second, MaxInFlight: 1})
	closed("consume", err)
	_, err = bus.Read(ctx, events.ReadConfig{Run: run})
	closed("read", err)
	_, err = bus.Lag(ctx, run, "worker")
	closed("lag", err)
	_, err = bus.HasRun(ctx, run)
	closed("has run", err)
	_, err = c.Fetch(ctx, 1, 0)
	closed("fetch", err)
	_, _, err = r.Next(ctx)
	closed("next", err)
	closed("ack", held[1].Ack(ctx))
	for _, again := range []func() error{c.Close, r.Close, bus.Close} {
		if err := again(); err != nil {
			t.Errorf("second close: %v", err)
		}
	}
	// Answers before Close are stored.
	untilLag(ctx, t, s.newBus(t), run, "worker", events.Lag{InFlight: 1})
}

// restart restarts the service under open consumers and readers.
func (s *suite) restart(t *testing.T) {
	ctx, bus, run := s.startFor(t, restartTimeout)
	list, order := s.stream(ctx, t, bus, run, 3, func(int) { s.features.Outage(t)() })
	fresh := s.newBus(t)
	publish(ctx, t, fresh, list...)
	if d := cmp.Diff(order, stored(ctx, t, fresh, run)); d != "" {
		t.Errorf("stored (-read before +got):\n%s", d)
	}
}

// loseNode stops a node under an open consumer, a reader and an owner, and
// after its return another one.
func (s *suite) loseNode(t *testing.T) {
	ctx, bus, run := s.startFor(t, restartTimeout)
	owner := lease(ctx, t, bus, events.LeaseConfig{Run: run, TTL: aliveTTL})
	defer closeLease(t, owner)
	back := func() {}
	_, order := s.stream(ctx, t, bus, run, 3, func(part int) {
		confirm(ctx, t, owner, nil)
		back()
		if back = func() {}; part < 2 {
			back = s.features.LoseNode(t, run)
		}
	})
	confirm(ctx, t, owner, nil)
	if d := cmp.Diff(order, stored(ctx, t, s.newBus(t), run)); d != "" {
		t.Errorf("stored (-read before +got):\n%s", d)
	}
}

// stream publishes events, reads them and handles them, part by part, with an
// action after each part. It returns the events, and the order in which they
// were read: those of different groups may change their order during a failure.
func (s *suite) stream(ctx context.Context, t *testing.T, bus events.Bus, run string, parts int, after func(part int)) (list []events.Message, order []string) {
	t.Helper()
	const each = 10
	list = posed(run, parts*each)
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run, AckWait: 2 * time.Second})
	r := read(ctx, t, bus, events.ReadConfig{Run: run})
	seen := make(map[string]bool)
	for part := range parts {
		from, to := part*each, (part+1)*each
		// Publish all from the start: the bus must have kept them.
		for err := bus.Publish(ctx, list[:to]...); err != nil; err = bus.Publish(ctx, list[:to]...) {
			if ctx.Err() != nil {
				t.Fatalf("publish: %v", err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		for range list[from:to] {
			m, _ := next(ctx, t, r)
			order = append(order, m.ID)
		}
		for len(seen) < to {
			for _, d := range fetch(ctx, t, c, 1) {
				seen[d.Message().ID] = true
				// An answer may be lost with the connection.
				if d.Ack(ctx) != nil && ctx.Err() != nil {
					t.Fatal(ctx.Err())
				}
			}
		}
		after(part)
	}
	want, got := idsOf(list), slices.Clone(order)
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
	return list, order
}
