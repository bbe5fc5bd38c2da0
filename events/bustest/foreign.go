package bustest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/eventstest"
)

// foreignEvent publishes another payload under the ID of an event first. It
// counts, its publisher is told so, and the other messages are stored.
func (s *suite) foreignEvent(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 3)
	forged := eventstest.Posed(run, 1, 1)
	forged.Payload.(*events.ProblemPosed).Problem.Question += " Or not?"
	first := eventstest.Encode(forged)
	publish(ctx, t, s.newBus(t), first)
	for _, bus := range []events.Bus{bus, bus, s.newBus(t)} {
		err := bus.Publish(ctx, list...)
		var foreign *events.ForeignEventError
		if !errors.Is(err, events.ErrForeignEvent) || !errors.As(err, &foreign) || errors.Is(err, events.ErrLineage) {
			t.Fatalf("publish: %v, want ErrForeignEvent", err)
		}
		if foreign.Stored.ID != list[1].ID || foreign.Refused == "" {
			t.Errorf("the error is about %s", foreign.Stored.ID)
		}
	}
	publish(ctx, t, bus, first, list[0], list[2])
	if d := cmp.Diff(idsOf([]events.Message{first, list[0], list[2]}), stored(ctx, t, bus, run)); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
}

// noEventFirst publishes messages that are no event under the name of a later
// event. The event is stored beside them, once, and counts.
func (s *suite) noEventFirst(t *testing.T) {
	ctx, bus, run := s.start(t)
	event := posed(run, 1)[0]
	others := []events.Message{event, event, event}
	others[0].Encoding, others[0].Data = events.EncodingNone, []byte{0xc1}
	others[1].Encoding, others[1].Data = events.EncodingZstd, []byte("no zstd")
	others[2].SchemaVersion = 999
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run})
	for _, m := range others {
		publish(ctx, t, s.newBus(t), m)
	}
	late := consume(ctx, t, bus, events.ConsumeConfig{Run: run, Name: "late"})
	for _, bus := range []events.Bus{bus, bus, s.newBus(t)} {
		publish(ctx, t, bus, event)
	}
	forged := eventstest.Posed(run, 1, 0)
	forged.Payload.(*events.ProblemPosed).Problem.Question += " Or not?"
	if err := bus.Publish(ctx, eventstest.Encode(forged)); !errors.Is(err, events.ErrForeignEvent) {
		t.Errorf("publish another payload: %v, want ErrForeignEvent", err)
	}
	// Every reader and every worker gets the event once, after the first of the
	// others.
	want := []events.Message{others[0], event}
	if d := cmp.Diff(idsOf(want), stored(ctx, t, bus, run)); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
	reader := read(ctx, t, s.newBus(t), events.ReadConfig{Run: run, Types: []events.Type{event.Type}})
	var read []events.Message
	for range want {
		m, _ := next(ctx, t, reader)
		read = append(read, m)
	}
	if d := cmp.Diff(want, read); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
	for _, c := range []events.Consumer{c, late} {
		var got []events.Message
		for _, d := range fetch(ctx, t, c, len(want)) {
			got = append(got, d.Message())
			if err := d.Ack(ctx); err != nil {
				t.Error(err)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("consumed (-want +got):\n%s", d)
		}
	}
	// A dead letter of the event finds it beside the others.
	other := consume(ctx, t, bus, events.ConsumeConfig{Run: run, Name: "buries"})
	for _, d := range fetch(ctx, t, other, len(want)) {
		if cmp.Equal(d.Message(), event) {
			bury(ctx, t, d, "failed")
		}
	}
	id := events.DeadLetterID("buries", event.ID, 1)
	if _, m, err := bus.DeadLetter(ctx, run, id); err != nil || !cmp.Equal(m, event) {
		t.Errorf("dead letter: %v, of %+v", err, m.Envelope)
	}
}

// outOfTurn publishes forged versions, and an end, before their turn. The events of
// the trainer and of the recorder are stored beside them, and every reader that
// knows the course of the run takes these.
func (s *suite) outOfTurn(t *testing.T) {
	ctx, bus, run := s.start(t)
	at := map[string]time.Time{"a": eventstest.At, "f": eventstest.At.Add(1)} // a forger does not know the time of an event
	version := func(n int, digit string) events.Message {
		uri := fmt.Sprintf("file:///r/checkpoints/code/v%06d", n)
		return eventstest.Encode(events.New(run, fmt.Sprintf("code-v%06d", n), digit, at[digit], &events.PolicyUpdated{
			Role: events.RoleCode, Version: n, Step: n, Checkpoint: events.Checkpoint{URI: uri, SHA256: strings.Repeat(digit, 64)},
		}))
	}
	start := events.Checkpoint{URI: "file:///start", SHA256: strings.Repeat("0", 64)}
	end := eventstest.Encode(events.New(run, "end-0001", "main", eventstest.At, &events.RunFinished{Attempt: 1, Reason: events.RunStopped}))
	inTurn := func(m events.Message, sure bool) error {
		return events.PublishInTurn(ctx, m, sure, bus.Publish, bus.Read)
	}
	// A forged end has the payload of the recorder's.
	forged := end
	forged.Time = at["f"]
	publish(ctx, t, s.newBus(t), version(2, "f"), version(3, "f"), forged)
	started := eventstest.Encode(events.New(run, "start-0001", "main", eventstest.At, &events.RunStarted{Attempt: 1, Code: start, Test: start}))
	for range 2 { // the second time as after a restart
		for _, m := range []events.Message{started, version(1, "a"), version(2, "a"), version(3, "a"), end} {
			if err := inTurn(m, m.Type != events.TypePolicyUpdated); err != nil {
				t.Fatalf("%s %s: %v", m.Type, m.Group, err)
			}
		}
	}
	// In its turn a forged version cannot be told from the trainer's.
	publish(ctx, t, s.newBus(t), version(4, "f"))
	var foreign *events.ForeignEventError
	if err := inTurn(version(4, "a"), false); !errors.As(err, &foreign) || !cmp.Equal(foreign.Stored, version(4, "f")) {
		t.Errorf("a version that another one was faster than: %v", err)
	}
	for _, bus := range []events.Bus{bus, s.newBus(t)} {
		reader, course := read(ctx, t, bus, events.ReadConfig{Run: run}), events.NewCourse()
		var got []events.Message
		for len(got) < 6 {
			m, _ := next(ctx, t, reader)
			if e, err := m.Admit(); err == nil && course.Check(e.Payload) == nil {
				course.Apply(e.Payload)
				got = append(got, m)
			}
		}
		if d := cmp.Diff([]events.Message{started, version(1, "a"), version(2, "a"), version(3, "a"), end, version(4, "f")}, got); d != "" {
			t.Errorf("events in turn (-want +got):\n%s", d)
		}
	}
}
