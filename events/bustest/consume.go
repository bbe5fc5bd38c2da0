package bustest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/eventstest"
)

func (s *suite) competingConsumers(t *testing.T) {
	ctx, bus, run := s.start(t)
	const n = 300
	config := events.ConsumeConfig{Run: run, Name: "worker", Types: []events.Type{events.TypeProblemPosed}, AckWait: longAckWait, MaxInFlight: 64}
	var mu sync.Mutex
	seen := make(map[string]int)
	working, done := context.WithCancel(ctx)
	defer done()
	var members sync.WaitGroup
	for range 2 {
		member := s.newBus(t)
		for range 2 {
			c := consume(ctx, t, member, config)
			members.Go(func() {
				for {
					got, err := c.Fetch(working, 7, time.Millisecond)
					if err != nil {
						return
					}
					for _, d := range got {
						if err := d.Ack(ctx); err != nil {
							t.Error(err)
						}
						mu.Lock()
						seen[d.Message().ID]++
						if d.Number() != 1 {
							t.Errorf("%s: delivery %d", d.Message().Group, d.Number())
						}
						if len(seen) == n {
							done()
						}
						mu.Unlock()
					}
				}
			})
		}
	}
	publish(ctx, t, bus, posed(run, n)...)
	members.Wait()
	if len(seen) != n {
		t.Errorf("%d of %d events were delivered", len(seen), n)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s was delivered %d times", id, times)
		}
	}
	untilLag(ctx, t, bus, run, "worker", events.Lag{})
}

func (s *suite) onlyTypesAsked(t *testing.T) {
	ctx, bus, run := s.start(t)
	var want []string
	for slot := range 5 {
		for _, e := range eventstest.Chain(run, 1, slot) {
			publish(ctx, t, bus, eventstest.Encode(e))
			if e.Type == events.TypeCodeSampled || e.Type == events.TypeGroupRewarded {
				want = append(want, e.ID)
			}
		}
	}
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run, Types: []events.Type{events.TypeGroupRewarded, events.TypeCodeSampled, events.TypeCodeSampled}})
	var got []string
	for _, d := range fetch(ctx, t, c, len(want)) {
		got = append(got, d.Message().ID)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("consumed (-want +got):\n%s", d)
	}
	nothing(ctx, t, c, 100*time.Millisecond)
}

func (s *suite) namesAreIndependent(t *testing.T) {
	ctx, bus, run := s.start(t)
	publish(ctx, t, bus, posed(run, 3)...)
	for _, name := range []string{"one", "two"} {
		for _, d := range fetch(ctx, t, consume(ctx, t, bus, events.ConsumeConfig{Run: run, Name: name}), 3) {
			if err := d.Ack(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	untilLag(ctx, t, bus, run, "one", events.Lag{})
	untilLag(ctx, t, bus, run, "two", events.Lag{})
}

func (s *suite) redeliveryAfterAckWait(t *testing.T) {
	ctx, bus, run := s.start(t)
	const ackWait = 300 * time.Millisecond
	publish(ctx, t, bus, posed(run, 1)...)
	config := events.ConsumeConfig{Run: run, AckWait: ackWait}
	first := fetch(ctx, t, consume(ctx, t, bus, config), 1)[0]
	other := consume(ctx, t, s.newBus(t), config)
	for want := 2; want <= 3; want++ {
		d := fetch(ctx, t, other, 1)[0]
		if d.Message().ID != first.Message().ID || d.Number() != want {
			t.Errorf("got %s delivery %d, want %s delivery %d", d.Message().Group, d.Number(), first.Message().Group, want)
		}
		if want == 3 {
			if err := d.Ack(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	untilLag(ctx, t, bus, run, "worker", events.Lag{})
}

func (s *suite) retryNoSoonerThan(t *testing.T) {
	ctx, bus, run := s.start(t)
	publish(ctx, t, bus, posed(run, 1)...)
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run})
	d := fetch(ctx, t, c, 1)[0]
	for attempt, after := range []time.Duration{0, 400 * time.Millisecond, 0} {
		if got := d.Number(); got != attempt+1 {
			t.Errorf("delivery %d, want %d", got, attempt+1)
		}
		asked := time.Now()
		if err := d.Retry(ctx, after); err != nil {
			t.Fatal(err)
		}
		d = fetch(ctx, t, c, 1)[0]
		if waited := time.Since(asked); waited < after {
			t.Errorf("delivered again after %v, want no sooner than %v", waited, after)
		}
	}
}

func (s *suite) ackIsFinal(t *testing.T) {
	ctx, bus, run := s.start(t)
	publish(ctx, t, bus, posed(run, 4)...)
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run, AckWait: 200 * time.Millisecond})
	for i := 0; i < 4; {
		for _, d := range fetch(ctx, t, c, 1) {
			i++
			if err := d.Ack(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	// No member fetches here: an ignored answer would stay in flight.
	untilLag(ctx, t, bus, run, "worker", events.Lag{})
	nothing(ctx, t, c, 500*time.Millisecond)
}

// extendKeeps holds a message for several AckWaits by extending it. Only a run
// in which the test itself was never late with an Extend counts.
func (s *suite) extendKeeps(t *testing.T) {
	ctx, bus, run := s.start(t)
	const (
		ackWait = time.Second
		hold    = 3 * ackWait
		every   = ackWait / 10
		tries   = 5
	)
	publish(ctx, t, bus, posed(run, tries)...)
	config := events.ConsumeConfig{Run: run, AckWait: ackWait, MaxInFlight: 1}
	mine := consume(ctx, t, bus, config)
	other := consume(ctx, t, s.newBus(t), config)
	for range tries {
		d := fetch(ctx, t, mine, 1)[0]
		began := time.Now()
		late := d.Number() > 1
		watching, stop := context.WithCancel(ctx)
		var watch sync.WaitGroup
		var stolen []events.Delivery
		watch.Go(func() { stolen, _ = other.Fetch(watching, 1, 0) })
		for last := began; time.Since(began) < hold; {
			time.Sleep(every)
			if err := d.Extend(ctx); err != nil {
				t.Fatal(err)
			}
			late = late || time.Since(last) > ackWait/2
			last = time.Now()
		}
		stop()
		watch.Wait()
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
		if len(stolen) > 0 && !late {
			t.Fatalf("%s was delivered to another member although it was extended", stolen[0].Message().Group)
		}
		if !late {
			return
		}
		for _, d := range stolen {
			if err := d.Ack(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Skip("this machine is too slow to extend in time")
}

func (s *suite) maxInFlight(t *testing.T) {
	ctx, bus, run := s.start(t)
	const limit = 4
	publish(ctx, t, bus, posed(run, 10)...)
	config := events.ConsumeConfig{Run: run, MaxInFlight: limit}
	c := consume(ctx, t, bus, config)
	other := consume(ctx, t, s.newBus(t), config)
	held := fetch(ctx, t, c, limit)
	nothing(ctx, t, c, 200*time.Millisecond)
	nothing(ctx, t, other, 200*time.Millisecond)
	if lag, err := bus.Lag(ctx, run, "worker"); err != nil || lag.InFlight != limit {
		t.Errorf("lag %+v, error %v, want %d in flight", lag, err, limit)
	}
	if err := held[0].Ack(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := c.Fetch(ctx, limit, time.Millisecond)
	if err != nil || len(got) != 1 {
		t.Errorf("fetch: %d deliveries and error %v, want 1", len(got), err)
	}
}

func (s *suite) fetchLingers(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 6)
	publish(ctx, t, bus, list[:3]...)
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run})
	got, err := c.Fetch(ctx, 2, time.Hour)
	if err != nil || len(got) != 2 {
		t.Fatalf("fetch of a full batch: %d deliveries, %v", len(got), err)
	}
	// The third is stored; the batch waits for the others.
	var publisher sync.WaitGroup
	publisher.Go(func() {
		for _, m := range list[3:] {
			time.Sleep(20 * time.Millisecond)
			if err := bus.Publish(ctx, m); err != nil {
				t.Error(err)
			}
		}
	})
	got, err = c.Fetch(ctx, 4, testTimeout)
	publisher.Wait()
	if err != nil || len(got) != 4 {
		t.Errorf("fetch: %d deliveries and error %v, want 4", len(got), err)
	}
	if _, err := c.Fetch(ctx, 0, 0); err == nil {
		t.Error("fetch of at most 0 deliveries gave no error")
	}
}

func (s *suite) cancelledFetchLosesNothing(t *testing.T) {
	ctx, bus, run := s.start(t)
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run})
	for i, m := range posed(run, 5) {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		_, err := c.Fetch(short, 1+i%2, 0)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("fetch: %v, want context.DeadlineExceeded", err)
		}
		publish(ctx, t, bus, m)
		if d := fetch(ctx, t, c, 1)[0]; d.Message().ID != m.ID || d.Number() != 1 {
			t.Errorf("got %s delivery %d, want %s delivery 1", d.Message().Group, d.Number(), m.Group)
		}
	}
}

func (s *suite) consumerResumes(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 6)
	publish(ctx, t, bus, list...)
	config := events.ConsumeConfig{Run: run}
	for i := range list {
		c := consume(ctx, t, bus, config)
		d := fetch(ctx, t, c, 1)[0]
		if d.Message().ID != list[i].ID {
			t.Errorf("delivered %s, want %s", d.Message().Group, list[i].Group)
		}
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	untilLag(ctx, t, bus, run, "worker", events.Lag{})
}

func (s *suite) lag(t *testing.T) {
	ctx, bus, run := s.start(t)
	publish(ctx, t, bus, posed(run, 5)...)
	publish(ctx, t, bus, eventstest.Encode(eventstest.CodeSampled(eventstest.Posed(run, 1, 0)))) // of a type that is not consumed
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run})
	untilLag(ctx, t, bus, run, "worker", events.Lag{Pending: 5})
	held := fetch(ctx, t, c, 2)
	untilLag(ctx, t, bus, run, "worker", events.Lag{Pending: 3, InFlight: 2})
	if err := held[0].Ack(ctx); err != nil {
		t.Fatal(err)
	}
	untilLag(ctx, t, bus, run, "worker", events.Lag{Pending: 3, InFlight: 1})
}
