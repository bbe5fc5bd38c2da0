package stage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

// letters waits until there are n dead letters, and returns the first line of
// their reasons by group.
func letters(t *testing.T, bus events.DeadLetters, n int) map[string]string {
	t.Helper()
	var list []events.DeadLetter
	eventually(t, fmt.Sprintf("%d dead letters", n), func() bool {
		var err error
		if list, err = bus.DeadLetters(bounded(t), run); err != nil {
			t.Fatal(err)
		}
		return len(list) >= n
	})
	reasons := make(map[string]string)
	for _, l := range list {
		if l.Name != "worker" || l.Type != events.TypeProblemPosed || l.Round != 1 {
			t.Errorf("dead letter %+v", l)
		}
		first, _, _ := strings.Cut(l.Reason, "\n")
		reasons[l.Group] = fmt.Sprintf("%d: %s", l.Deliveries, first)
	}
	return reasons
}

func letterID(slot int) string {
	return events.DeadLetterID("worker", eventstest.Posed(run, 1, slot).ID, 1)
}

func dropped(t *testing.T, bus events.Bus, n int) map[string]string {
	t.Helper()
	reasons := make(map[string]string)
	for _, e := range collect(t, bus, n, events.TypeGroupDropped) {
		g := e.Payload.(*events.GroupDropped)
		reasons[e.Group] = fmt.Sprintf("%s %s %d/%d", g.Stage, g.Reason, g.Step, g.Slot)
	}
	return reasons
}

// If a stage gives up on an event, the event becomes a dead letter with the
// reason, and its group is dropped. A message that is no event becomes a dead
// letter and drops no group. Events that a handler drops or snoozes become none.
func TestDeadLetters(t *testing.T) {
	bus := natstest.Bus(t)
	broken := eventstest.Encode(eventstest.Posed(run, 1, 4))
	broken.Encoding, broken.Data = events.EncodingNone, []byte("no msgpack")
	newer := eventstest.Encode(eventstest.Posed(run, 1, 5))
	newer.SchemaVersion = 99
	if err := bus.Publish(bounded(t), broken, newer); err != nil {
		t.Fatal(err)
	}
	var snoozes atomic.Int64
	c := config(bus, stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		switch e.Payload.(*events.ProblemPosed).Plan.Slot {
		case 0:
			return nil, errors.New("no luck")
		case 1:
			panic(errors.New("no entry for this problem"))
		case 2:
			return nil, stage.Drop(events.DropStale, "too old")
		case 3:
			if snoozes.Add(1) < 10 {
				return nil, stage.Snooze(time.Millisecond)
			}
		}
		return answer(ctx, e)
	}))
	registry := prometheus.NewRegistry()
	c.MaxTries, c.Concurrency, c.Registerer = 3, 6, registry
	stop := start(t, c)
	post(t, bus, 4)
	got := letters(t, bus, 4)
	settled(t, bus)
	slot := func(i int) string { return eventstest.Posed(run, 1, i).Group }
	if d := cmp.Diff(map[string]string{
		slot(0): "3: failed 3 times, last: no luck",
		slot(1): "3: failed 3 times, last: handler panicked: no entry for this problem",
		slot(4): "1: " + broken.ID + ": problem.posed " + slot(4) + ": malformed payload: byte 0: not a map",
		slot(5): "3: " + newer.ID + ": problem.posed " + slot(5) + ": payload schema is newer than this build: version 99, this build knows 1",
	}, got); d != "" {
		t.Errorf("dead letters (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]string{
		slot(0): "worker retries 1/0", slot(1): "worker retries 1/1", slot(2): "worker stale 1/2",
	}, dropped(t, bus, 3)); d != "" {
		t.Errorf("dropped (-want +got):\n%s", d)
	}
	// The dead letter has the stack of the panic, and the message.
	l, _, err := bus.DeadLetter(bounded(t), run, letterID(1))
	if err != nil || !strings.Contains(l.Reason, "deadletter_test.go") {
		t.Errorf("the reason of a panic does not say where: %v, %v", l, err)
	}
	if _, m, err := bus.DeadLetter(bounded(t), run, letterID(4)); err != nil || cmp.Diff(broken, m) != "" {
		t.Errorf("message of a dead letter: %v, %v", m, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	metrics := gather(t, registry)
	for name, want := range map[string]float64{
		"codea1_stage_handled_total dead worker": 4, "codea1_stage_handled_total dropped worker": 1, "codea1_stage_handled_total passed worker": 1,
		"codea1_stage_failed_total worker": 3*3 + 1, "codea1_stage_dropped_total retries worker": 2, "codea1_stage_dropped_total malformed worker": 0,
	} {
		if metrics[name] != want {
			t.Errorf("%s is %v, want %v", name, metrics[name], want)
		}
	}
	// The group has ended. The log keeps one end of a group.
	if err := bus.Redeliver(bounded(t), run, letterID(0)); !errors.Is(err, events.ErrGroupEnded) {
		t.Errorf("redeliver: %v, want ErrGroupEnded", err)
	}
}

// A held dead letter can be redelivered, and its group continues.
func TestHeldDeadLetterIsTriedAgain(t *testing.T) {
	bus := natstest.Bus(t)
	var fixed atomic.Bool
	c := config(bus, stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		if !fixed.Load() {
			return nil, errors.New("a bug")
		}
		return answer(ctx, e)
	}))
	c.MaxTries, c.HoldDeadLetters = 2, time.Hour
	start(t, c)
	post(t, bus, 2)
	letters(t, bus, 2)
	settled(t, bus)
	fixed.Store(true)
	if err := bus.Redeliver(bounded(t), run, letterID(1)); err != nil {
		t.Fatal(err)
	}
	if e := collect(t, bus, 1, events.TypeCodeSampled, events.TypeGroupDropped)[0]; e.Type != events.TypeCodeSampled || e.Group != eventstest.Posed(run, 1, 1).Group {
		t.Errorf("%s of %s came of it", e.Type, e.Group)
	}
	settled(t, bus)
	if got := letters(t, bus, 1); len(got) != 1 || got[eventstest.Posed(run, 1, 0).Group] == "" {
		t.Errorf("dead letters left: %v", got)
	}
}

// A group whose dead letter was held for long enough is dropped, by any
// replica. The dead letter of a message that is no event drops none.
func TestHeldDeadLetterIsReleased(t *testing.T) {
	bus := natstest.Bus(t)
	broken := eventstest.Encode(eventstest.Posed(run, 1, 1))
	broken.Encoding, broken.Data = events.EncodingNone, []byte("no msgpack")
	if err := bus.Publish(bounded(t), broken); err != nil {
		t.Fatal(err)
	}
	post(t, bus, 1)
	c := config(bus, stage.Each(func(context.Context, *events.Event) ([]*events.Event, error) { return nil, errors.New("a bug") }))
	c.MaxTries, c.HoldDeadLetters = 1, time.Hour
	stop := start(t, c)
	letters(t, bus, 2)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	c.Instance, c.HoldDeadLetters, c.Registerer = "1", time.Millisecond, registry
	stop = start(t, c)
	if d := cmp.Diff(map[string]string{
		eventstest.Posed(run, 1, 0).Group: "worker retries 1/0",
	}, dropped(t, bus, 1)); d != "" {
		t.Errorf("dropped (-want +got):\n%s", d)
	}
	c.Instance = "2" // drops them again, which changes nothing
	start(t, c)
	eventually(t, "another instance has looked", func() bool {
		return gather(t, registry)["codea1_stage_dropped_total retries worker"] == 2 // both replicas count
	})
	if err := bus.Redeliver(bounded(t), run, letterID(0)); !errors.Is(err, events.ErrGroupEnded) {
		t.Errorf("redeliver: %v, want ErrGroupEnded", err)
	}
	if got := letters(t, bus, 2); len(got) != 2 {
		t.Errorf("dead letters kept as evidence: %v", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// The cause of a context that HandleTimeout ended is a TimeoutError.
func TestHandlerTimeout(t *testing.T) {
	bus := natstest.Bus(t)
	cause := make(chan error, 1)
	c := config(bus, stage.Each(func(ctx context.Context, _ *events.Event) ([]*events.Event, error) {
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil, nil
	}))
	c.HandleTimeout = 20 * time.Millisecond
	start(t, c)
	post(t, bus, 1)
	var timeout *stage.TimeoutError
	if err := <-cause; !errors.As(err, &timeout) || timeout.After != c.HandleTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the context ended with %v", err)
	}
	settled(t, bus)
}
