package bustest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codea1/events"
	"codea1/events/eventstest"
)

func ack(ctx context.Context, t *testing.T, d events.Delivery) {
	t.Helper()
	if err := d.Ack(ctx); err != nil {
		t.Fatal(err)
	}
}

func bury(ctx context.Context, t *testing.T, d events.Delivery, reason string) {
	t.Helper()
	if err := d.DeadLetter(ctx, reason); err != nil {
		t.Fatal(err)
	}
}

func letters(ctx context.Context, t *testing.T, bus events.Broker, run string) []events.DeadLetter {
	t.Helper()
	list, err := bus.DeadLetters(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// letterOf returns the dead letter that the worker set "worker" makes of a
// message.
func letterOf(m *events.Message, round, attempts int, reason string) events.DeadLetter {
	return events.DeadLetter{
		ID: events.DeadLetterID("worker", m.ID, round), Name: "worker", EventID: m.ID, Type: m.Type, Group: m.Group,
		Round: round, Deliveries: attempts, Reason: reason,
	}
}

var butTime = cmpopts.IgnoreFields(events.DeadLetter{}, "Time")

func (s *suite) deadLetter(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 4)
	publish(ctx, t, bus, list...)
	const ackWait = time.Second
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run, AckWait: ackWait})
	other := consume(ctx, t, bus, events.ConsumeConfig{Run: run, Name: "other"})
	began := time.Now()
	reason := "cannot parse \"x\"\n" + strings.Repeat("ü", events.MaxReasonBytes)
	attempts := map[string]int{}
	// A slow machine may get a message again before its first delivery is settled.
	for handled := map[string]bool{}; len(handled) < len(list); {
		d := fetch(ctx, t, c, 1)[0]
		i := slices.IndexFunc(list, func(m events.Message) bool { return m.ID == d.Message().ID })
		if i%2 == 0 {
			ack(ctx, t, d)
		} else {
			if !handled[list[i].ID] {
				attempts[list[i].ID] = d.Number()
			}
			bury(ctx, t, d, reason)
		}
		handled[list[i].ID] = true
	}
	untilLag(ctx, t, bus, run, "worker", events.Lag{})
	nothing(ctx, t, c, ackWait+500*time.Millisecond)
	// A new connection finds the dead letters.
	fresh := s.newBus(t)
	got := letters(ctx, t, fresh, run)
	if len(got) != 2 {
		t.Fatalf("%d dead letters, want 2", len(got))
	}
	for i, l := range got {
		m := &list[1+2*i]
		if d := cmp.Diff(letterOf(m, 1, attempts[m.ID], events.ClipReason(reason)), l, butTime); d != "" {
			t.Errorf("dead letter (-want +got):\n%s", d)
		}
		if l.Time.Before(began.Add(-time.Second)) || l.Time.After(time.Now().Add(time.Second)) {
			t.Errorf("dead letter of %v, now it is %v", l.Time, time.Now())
		}
		one, message, err := fresh.DeadLetter(ctx, run, l.ID)
		if d := cmp.Diff(l, one); err != nil || d != "" {
			t.Errorf("one dead letter: %v (-listed +alone):\n%s", err, d)
		}
		if d := cmp.Diff(*m, message); d != "" {
			t.Errorf("message of a dead letter (-published +got):\n%s", d)
		}
	}
	// Other worker sets still get the messages.
	fetch(ctx, t, other, len(list))
	if d := cmp.Diff(idsOf(list), stored(ctx, t, bus, run)); d != "" {
		t.Errorf("events of the run (-want +got):\n%s", d)
	}
}

func (s *suite) deadLetterOnceARound(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 1)
	publish(ctx, t, bus, list...)
	config := events.ConsumeConfig{Run: run, AckWait: 200 * time.Millisecond}
	first := fetch(ctx, t, consume(ctx, t, bus, config), 1)[0]
	second := fetch(ctx, t, consume(ctx, t, s.newBus(t), config), 1)[0]
	bury(ctx, t, second, "second")
	bury(ctx, t, first, "first")
	if d := cmp.Diff([]events.DeadLetter{letterOf(&list[0], 1, second.Number(), "second")}, letters(ctx, t, bus, run), butTime); d != "" {
		t.Errorf("dead letters (-want +got):\n%s", d)
	}
	untilLag(ctx, t, bus, run, "worker", events.Lag{})
}

func (s *suite) redeliver(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 2)
	publish(ctx, t, bus, list...)
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run})
	other := consume(ctx, t, bus, events.ConsumeConfig{Run: run, Name: "other"})
	for _, d := range fetch(ctx, t, c, 2) {
		bury(ctx, t, d, "first")
	}
	for _, d := range fetch(ctx, t, other, 2) {
		ack(ctx, t, d)
	}
	fresh := s.newBus(t)
	for round := 1; round <= 3; round++ {
		if d := cmp.Diff(letterOf(&list[1], 1, 1, "first"), letters(ctx, t, bus, run)[0], butTime); round > 1 && d != "" {
			t.Errorf("the other dead letter (-want +got):\n%s", d)
		}
		id := events.DeadLetterID("worker", list[0].ID, round)
		if err := fresh.Redeliver(ctx, run, id); err != nil {
			t.Fatal(err)
		}
		if err := bus.Redeliver(ctx, run, id); !errors.Is(err, events.ErrNoDeadLetter) {
			t.Errorf("redeliver again: %v, want ErrNoDeadLetter", err)
		}
		if _, _, err := bus.DeadLetter(ctx, run, id); !errors.Is(err, events.ErrNoDeadLetter) {
			t.Errorf("redelivered dead letter: %v, want ErrNoDeadLetter", err)
		}
		untilLag(ctx, t, bus, run, "worker", events.Lag{Pending: 1})
		d := fetch(ctx, t, c, 1)[0]
		if diff := cmp.Diff(list[0], d.Message()); diff != "" || d.Number() != 1 {
			t.Errorf("redelivered as delivery %d (-published +redelivered):\n%s", d.Number(), diff)
		}
		if round == 3 {
			ack(ctx, t, d)
			break
		}
		if err := d.Retry(ctx, 0); err != nil {
			t.Fatal(err)
		}
		d = fetch(ctx, t, c, 1)[0]
		bury(ctx, t, d, "again")
		got := letters(ctx, t, fresh, run)
		if d := cmp.Diff(letterOf(&list[0], round+1, 2, "again"), got[len(got)-1], butTime); d != "" {
			t.Errorf("next round (-want +got):\n%s", d)
		}
	}
	untilLag(ctx, t, bus, run, "worker", events.Lag{})
	untilLag(ctx, t, bus, run, "other", events.Lag{})
	nothing(ctx, t, other, 100*time.Millisecond)
	if d := cmp.Diff(idsOf(list), stored(ctx, t, bus, run)); d != "" {
		t.Errorf("events of the run (-want +got):\n%s", d)
	}
}

func (s *suite) redeliverOnce(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 1)
	publish(ctx, t, bus, list...)
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run})
	bury(ctx, t, fetch(ctx, t, c, 1)[0], "")
	var done atomic.Int32
	var callers sync.WaitGroup
	for range 2 {
		caller := s.newBus(t)
		for range 2 {
			callers.Go(func() {
				err := caller.Redeliver(ctx, run, events.DeadLetterID("worker", list[0].ID, 1))
				if err == nil {
					done.Add(1)
				} else if !errors.Is(err, events.ErrNoDeadLetter) {
					t.Error(err)
				}
			})
		}
	}
	callers.Wait()
	if done.Load() != 1 {
		t.Errorf("redelivered by %d callers, want 1", done.Load())
	}
	ack(ctx, t, fetch(ctx, t, c, 1)[0])
	untilLag(ctx, t, bus, run, "worker", events.Lag{})
}

func (s *suite) redeliverIntoEndedGroup(t *testing.T) {
	ctx, bus, run := s.start(t)
	opened := eventstest.Posed(run, 1, 0)
	m := eventstest.Encode(opened)
	publish(ctx, t, bus, m)
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run})
	d := fetch(ctx, t, c, 1)[0]
	publish(ctx, t, bus, eventstest.Encode(events.Caused(opened, "worker-0", eventstest.At, &events.GroupDropped{Stage: "worker", Reason: events.DropRetries})))
	bury(ctx, t, d, "failed 5 times")
	if err := bus.Redeliver(ctx, run, events.DeadLetterID("worker", m.ID, 1)); !errors.Is(err, events.ErrGroupEnded) {
		t.Errorf("redeliver into an ended group: %v, want ErrGroupEnded", err)
	}
	nothing(ctx, t, c, 100*time.Millisecond)
}

func (s *suite) noDeadLetter(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 1)
	publish(ctx, t, bus, list...)
	if got := letters(ctx, t, bus, run); len(got) > 0 {
		t.Errorf("%d dead letters", len(got))
	}
	consume(ctx, t, bus, events.ConsumeConfig{Run: run})
	for _, id := range []string{
		"", "worker", events.DeadLetterID("worker", list[0].ID, 1), events.DeadLetterID("worker", list[0].ID, 0),
		events.DeadLetterID("nobody", list[0].ID, 1), events.DeadLetterID("*", list[0].ID, 1), "worker.*.1", "worker.>",
	} {
		if _, _, err := bus.DeadLetter(ctx, run, id); !errors.Is(err, events.ErrNoDeadLetter) {
			t.Errorf("dead letter %q: %v, want ErrNoDeadLetter", id, err)
		}
		if err := bus.Redeliver(ctx, run, id); !errors.Is(err, events.ErrNoDeadLetter) {
			t.Errorf("redeliver %q: %v, want ErrNoDeadLetter", id, err)
		}
	}
}

func (s *suite) restartKeepsDeadLetters(t *testing.T) {
	ctx, bus, run := s.startFor(t, restartTimeout)
	list := posed(run, 2)
	publish(ctx, t, bus, list...)
	// A delivery that is lost with a connection comes again after AckWait.
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run, AckWait: 30 * time.Second})
	for _, d := range fetch(ctx, t, c, 2) {
		bury(ctx, t, d, "failed")
	}
	s.features.Outage(t)()
	fresh := s.newBus(t)
	want := []events.DeadLetter{letterOf(&list[0], 1, 1, "failed"), letterOf(&list[1], 1, 1, "failed")}
	if d := cmp.Diff(want, letters(ctx, t, fresh, run), butTime); d != "" {
		t.Errorf("dead letters (-want +got):\n%s", d)
	}
	if err := fresh.Redeliver(ctx, run, want[0].ID); err != nil {
		t.Fatal(err)
	}
	s.features.Outage(t)()
	d := fetch(ctx, t, c, 1)[0]
	if d.Message().ID != list[0].ID {
		t.Errorf("redelivered %s, want %s", d.Message().Group, list[0].Group)
	}
	for err := d.Ack(ctx); err != nil; err = d.Ack(ctx) {
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if d := cmp.Diff(want[1:], letters(ctx, t, s.newBus(t), run), butTime); d != "" {
		t.Errorf("dead letters after a redelivery (-want +got):\n%s", d)
	}
}
