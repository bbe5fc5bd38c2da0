package natsbus_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
)

// A client with the right to publish stores messages around the subject of a
// later event: without headers, in the later places, and under its message ID.
// The event is stored, and every reader and worker gets it and no other one.
func TestSubjectTakenBefore(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	bus := server.Connect(t, natsbus.Config{})
	ctx := bounded(t)
	if err := bus.EnsureStream(ctx, "r1"); err != nil {
		t.Fatal(err)
	}
	_, js := raw(t, server.URL())
	event := func(slot int, question string) events.Message {
		e := eventstest.Posed("r1", 1, slot)
		e.Payload.(*events.ProblemPosed).Problem.Question += question
		return eventstest.Encode(e)
	}
	put := func(subject string, m *events.Message, opts ...jetstream.PublishOpt) {
		t.Helper()
		msg := nats.NewMsg(subject)
		if m == nil {
			msg.Data = []byte("hello")
		} else {
			m.Headers("ce-", msg.Header.Set)
			msg.Data = m.Data
		}
		if _, err := js.PublishMsg(ctx, msg, opts...); err != nil {
			t.Fatalf("%s: %v", subject, err)
		}
	}
	const taken, beside, alone, known = "problem.posed.s000001-q0000", "problem.posed.s000001-q0001", "problem.posed.s000001-q0002", "problem.posed.s000001-q0003"
	list := []events.Message{event(0, ""), event(1, ""), event(2, ""), event(3, "")}
	forged := []events.Message{event(0, "?"), event(1, "?"), event(2, "?")}
	// A valid message in a later place is older than the one in the first place.
	put("codea1.r1.again."+taken+".2", &forged[0])
	put("codea1.r1."+taken, nil)
	put("codea1.r1.again."+taken+".3", nil)
	put("codea1.r1.again."+taken+".33", &forged[0]) // no place
	// The event is in the first place already.
	if err := bus.Publish(ctx, list[1]); err != nil {
		t.Fatal(err)
	}
	put("codea1.r1.again."+beside+".2", &forged[1])
	// The first place is empty.
	put("codea1.r1.again."+alone+".2", &forged[2])
	put("codea1.r1.noise", nil, jetstream.WithMsgID(list[3].ID))

	for range 2 {
		if err := bus.Publish(ctx, list...); err != nil {
			t.Fatal(err)
		}
	}
	end := posed(5)[4]
	if err := bus.Publish(ctx, end); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, m := range append(list, end) {
		want[m.ID] = string(m.Data)
	}
	reader, err := bus.Read(ctx, events.ReadConfig{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for range want {
		m, _, err := reader.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got[m.ID] = string(m.Data)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
	c, err := bus.Consume(ctx, events.ConsumeConfig{Run: "r1", Name: "worker", Types: []events.Type{events.TypeProblemPosed}, AckWait: time.Minute, MaxInFlight: 20})
	if err != nil {
		t.Fatal(err)
	}
	got = map[string]string{}
	for len(got) < len(want) {
		deliveries, err := c.Fetch(ctx, 10, 0)
		if err != nil {
			t.Fatalf("%v after %d", err, len(got))
		}
		for _, d := range deliveries {
			got[d.Message().ID] = string(d.Message().Data)
			if err := d.Ack(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("consumed (-want +got):\n%s", d)
	}
	for ctx.Err() == nil {
		if lag, err := bus.Lag(ctx, "r1", "worker"); err != nil {
			t.Fatal(err)
		} else if lag == (events.Lag{}) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("a message that is no event stays in the worker set")
}
