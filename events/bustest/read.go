package bustest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/eventstest"
)

func (s *suite) readersAgree(t *testing.T) {
	ctx, bus, run := s.start(t)
	const publishers, each = 4, 40
	orders := make([][]string, 3)
	var work sync.WaitGroup
	for i := range orders {
		r := read(ctx, t, s.newBus(t), events.ReadConfig{Run: run})
		work.Go(func() {
			for range publishers * each {
				m, _, err := r.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				orders[i] = append(orders[i], m.ID)
			}
			if lagging, ok := r.(events.Lagging); !ok || lagging.Behind() != 0 {
				t.Errorf("the reader does not know that it has read the last message")
			}
		})
	}
	for p := range publishers {
		work.Go(func() {
			for _, m := range posed(run, (p+1)*each)[p*each:] {
				if err := bus.Publish(ctx, m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	late := stored(ctx, t, bus, run)
	for _, order := range orders {
		if d := cmp.Diff(late, order); d != "" {
			t.Errorf("two readers disagree:\n%s", d)
		}
	}
}

func (s *suite) resumeFromEveryPosition(t *testing.T) {
	ctx, bus, run := s.start(t)
	var list []events.Message
	for slot := range 4 {
		for _, e := range eventstest.Chain(run, 1, slot) {
			list = append(list, eventstest.Encode(e))
		}
	}
	publish(ctx, t, bus, list...)
	for _, types := range [][]events.Type{nil, {events.TypeCodeSampled, events.TypeGroupRewarded}} {
		r := read(ctx, t, bus, events.ReadConfig{Run: run, Types: types})
		var want []string
		positions := []events.Position{events.Start}
		for _, m := range list {
			if types != nil && !slices.Contains(types, m.Type) {
				continue
			}
			got, p := next(ctx, t, r)
			want = append(want, got.ID)
			positions = append(positions, p)
		}
		for i, p := range positions[:len(want)] {
			r := read(ctx, t, s.newBus(t), events.ReadConfig{Run: run, Types: types, From: p})
			for _, id := range want[i:] {
				m, after := next(ctx, t, r)
				if m.ID != id {
					t.Fatalf("from %q: read %s %s, want %s", p, m.Type, m.Group, id)
				}
				if k := slices.Index(want, id); after != positions[k+1] {
					t.Fatalf("from %q: position %q, was %q", p, after, positions[k+1])
				}
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		// The last position is that of an event that is not published yet.
		r = read(ctx, t, bus, events.ReadConfig{Run: run, Types: types, From: positions[len(want)]})
		fresh := read(ctx, t, s.newBus(t), events.ReadConfig{Run: run, Types: types, New: true})
		more := eventstest.Encode(eventstest.CodeSampled(eventstest.Posed(run, 2, len(types))))
		publish(ctx, t, bus, more)
		m, at := next(ctx, t, r)
		if m.ID != more.ID {
			t.Errorf("read %s %s, want %s", m.Type, m.Group, more.Group)
		}
		if m, p := next(ctx, t, fresh); m.ID != more.ID || p != at {
			t.Errorf("a reader of new messages has %s %s at %q, want %s at %q", m.Type, m.Group, p, more.Group, at)
		}
		list = append(list, more)
	}
}

func (s *suite) readOnlyTypesAsked(t *testing.T) {
	ctx, bus, run := s.start(t)
	var want, got []string
	r := read(ctx, t, bus, events.ReadConfig{Run: run, Types: []events.Type{events.TypeTestsSampled, events.TypeProblemPosed}})
	for slot := range 5 {
		for _, e := range eventstest.Chain(run, 1, slot) {
			publish(ctx, t, bus, eventstest.Encode(e))
			if e.Type == events.TypeProblemPosed || e.Type == events.TypeTestsSampled {
				want = append(want, e.ID)
			}
		}
	}
	for range want {
		m, _ := next(ctx, t, r)
		got = append(got, m.ID)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
}

func (s *suite) badPosition(t *testing.T) {
	ctx, bus, run := s.start(t)
	publish(ctx, t, bus, posed(run, 1)...)
	for _, p := range []events.Position{"no position", "-1", "99999999999999999999999999"} {
		if _, err := bus.Read(ctx, events.ReadConfig{Run: run, From: p}); err == nil {
			t.Errorf("read from %q gave no error", p)
		}
	}
}

// HasRun does not create a run, and it finds a run of another client.
func (s *suite) hasRun(t *testing.T) {
	ctx, bus, run := s.start(t)
	has := func(want bool) {
		t.Helper()
		if has, err := bus.HasRun(ctx, run); err != nil || has != want {
			t.Errorf("has run: %v, %v, want %v", has, err, want)
		}
	}
	has(false)
	has(false)
	publish(ctx, t, s.newBus(t), posed(run, 1)...)
	has(true)
	read(ctx, t, bus, events.ReadConfig{Run: run})
	has(true)
	if _, err := bus.HasRun(ctx, "no.name"); err == nil {
		t.Error("a name with a dot is a run's")
	}
}

func (s *suite) nextUnblocks(t *testing.T) {
	ctx, bus, run := s.start(t)
	r := read(ctx, t, bus, events.ReadConfig{Run: run})
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, _, err := r.Next(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("next: %v, want context.DeadlineExceeded", err)
	}
	unblocked := make(chan error, 1)
	go func() {
		_, _, err := r.Next(ctx)
		unblocked <- err
	}()
	time.Sleep(20 * time.Millisecond) // usually it blocks by now; in any case it must end
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := <-unblocked; !errors.Is(err, events.ErrClosed) {
		t.Errorf("next: %v, want ErrClosed", err)
	}
	if _, _, err := r.Next(ctx); !errors.Is(err, events.ErrClosed) {
		t.Errorf("next after close: %v, want ErrClosed", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func (s *suite) cancelledNextLosesNothing(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 50)
	r := read(ctx, t, bus, events.ReadConfig{Run: run})
	var publisher sync.WaitGroup
	publisher.Go(func() {
		for _, m := range list {
			if err := bus.Publish(ctx, m); err != nil {
				t.Error(err)
			}
		}
	})
	var got []string
	// A wait that is always too short to reach the server reads nothing.
	const shortest, longest = time.Millisecond, time.Second
	for wait := shortest; len(got) < len(list) && ctx.Err() == nil; wait = min(2*wait, longest) {
		short, cancel := context.WithTimeout(ctx, wait)
		m, _, err := r.Next(short)
		cancel()
		if err == nil {
			got, wait = append(got, m.ID), shortest/2
		}
	}
	publisher.Wait()
	if d := cmp.Diff(idsOf(list), got); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
}

// slowReaderHoldsLittle opens a reader and a worker on a long run, takes few
// messages, and measures the memory that closing them frees. A server in this
// process also uses the heap, so only memory that is held in every try counts.
func (s *suite) slowReaderHoldsLittle(t *testing.T) {
	ctx, bus, run := s.start(t)
	const messages, size, limit, attempts = 96, 1 << 20, 64 << 20, 5
	for slot := range messages {
		publish(ctx, t, bus, sized(run, slot, size))
	}
	var held []int64
	for i := range attempts {
		held = append(held, s.heldBySlow(ctx, t, bus, run, messages, fmt.Sprintf("worker%d", i)))
		if held[len(held)-1] <= limit {
			return
		}
	}
	t.Errorf("bytes held: %d, want at most %d", held, limit)
}

// heldBySlow returns the heap bytes of a reader and a worker that take ten of a
// run's messages each.
func (s *suite) heldBySlow(ctx context.Context, t *testing.T, bus events.Broker, run string, messages int64, worker string) int64 {
	own := s.newBus(t)
	r := read(ctx, t, own, events.ReadConfig{Run: run})
	c := consume(ctx, t, own, events.ConsumeConfig{Run: run, Name: worker, MaxInFlight: int(messages)})
	const taken = 10
	for range taken {
		next(ctx, t, r)
		fetch(ctx, t, c, 1)
		time.Sleep(10 * time.Millisecond) // time to prefetch
	}
	// Messages that no member has fetched are pending.
	untilLag(ctx, t, bus, run, worker, events.Lag{Pending: messages - taken, InFlight: taken})
	open := heap()
	for _, closer := range []io.Closer{c, r, own} {
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return open - heap()
}

// heap returns the heap bytes in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
