package bustest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/eventstest"
)

// allTypes returns one message of every type, compressed and not.
func allTypes(run string) []events.Message {
	var list []events.Message
	chain := eventstest.Chain(run, 1, 7)
	for _, e := range chain {
		list = append(list, eventstest.Encode(e))
	}
	sum := strings.Repeat("0a", sha256.Size)
	checkpoint := events.Checkpoint{URI: "file:///runs/r/v1", SHA256: sum}
	for group, p := range map[string]events.Payload{
		"attempt-1":   &events.RunStarted{Attempt: 1, Steps: 3, Config: strings.Repeat("alpha: 0.5\n", 500), Code: checkpoint, Test: checkpoint},
		"attempt-1-z": &events.RunFinished{Attempt: 1, Steps: 3, Reason: events.RunCompleted},
		"code-v1":     &events.PolicyUpdated{Role: events.RoleCode, Version: 1, Step: 1, Groups: []string{"s000001-q0007"}, Checkpoint: checkpoint},
		"e-after-0":   &events.EvalScored{Plan: eventstest.Plan(1, 7), ProblemID: "add-7", Correct: []bool{true, false}, Suites: 2},
		"worker-0-1":  &events.StageHeartbeat{Stage: "worker", Beat: 1, Busy: 0.5},
		"s000001-q7":  &events.GroupDropped{Stage: "worker", Reason: events.DropStale, Detail: "line one\nline \"two\" – ü"},
	} {
		list = append(list, eventstest.Encode(events.New(run, group, "a/b c", eventstest.At, p)))
	}
	return list
}

func (s *suite) roundTrip(t *testing.T) {
	ctx, bus, run := s.start(t)
	want := allTypes(run)
	publish(ctx, t, bus, want...)

	r := read(ctx, t, bus, events.ReadConfig{Run: run})
	var got []events.Message
	for range want {
		m, _ := next(ctx, t, r)
		got = append(got, m)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read (-published +read):\n%s", d)
	}

	byID := make(map[string]events.Message)
	for _, d := range fetch(ctx, t, consume(ctx, t, bus, events.ConsumeConfig{Run: run, Types: events.Types()}), len(want)) {
		byID[d.Message().ID] = d.Message()
	}
	for _, m := range want {
		got := byID[m.ID]
		if d := cmp.Diff(m, got); d != "" {
			t.Errorf("%s (-published +consumed):\n%s", m.Type, d)
		}
		if _, err := got.Decode(); err != nil {
			t.Errorf("%s: %v", m.Type, err)
		}
	}
}

// sized returns a message with n bytes of incompressible payload. No bus reads
// a payload.
func sized(run string, slot, n int) events.Message {
	m := eventstest.Encode(eventstest.Posed(run, 1, slot))
	m.Encoding = events.EncodingNone
	m.Data = noise()[:n]
	return m
}

var noise = sync.OnceValue(func() []byte {
	data := make([]byte, events.MaxPayloadBytes+1)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	return data
})

func (s *suite) largestPayload(t *testing.T) {
	ctx, bus, run := s.start(t)
	m := sized(run, 0, events.MaxPayloadBytes)
	publish(ctx, t, bus, m)
	got, _ := next(ctx, t, read(ctx, t, bus, events.ReadConfig{Run: run}))
	if hash(got.Data) != hash(m.Data) {
		t.Errorf("%d bytes came back as %d other ones", len(m.Data), len(got.Data))
	}
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (s *suite) tooLargeStoresNothing(t *testing.T) {
	ctx, bus, run := s.start(t)
	small := eventstest.Encode(eventstest.Posed(run, 1, 0))
	err := bus.Publish(ctx, small, sized(run, 1, events.MaxPayloadBytes+1))
	if !errors.Is(err, events.ErrTooLarge) {
		t.Errorf("publish: %v, want ErrTooLarge", err)
	}
	if ids := stored(ctx, t, bus, run); len(ids) > 0 {
		t.Errorf("%d events were stored", len(ids))
	}
}

func (s *suite) invalidEnvelope(t *testing.T) {
	ctx, bus, run := s.start(t)
	for _, change := range []func(*events.Message){
		func(m *events.Message) { m.Group = "a.b" },
		func(m *events.Message) { m.Group = "*" },
		func(m *events.Message) { m.Run = "" },
		func(m *events.Message) { m.ID = "1" },
		func(m *events.Message) { m.Type = "no.such" },
	} {
		m := eventstest.Encode(eventstest.Posed(run, 1, 0))
		change(&m)
		if bus.Publish(ctx, m) == nil {
			t.Errorf("published run %q type %q group %q id %q", m.Run, m.Type, m.Group, m.ID)
		}
	}
	if ids := stored(ctx, t, bus, run); len(ids) > 0 {
		t.Errorf("%d events were stored", len(ids))
	}
}

func (s *suite) sameEventOnce(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 20)
	publish(ctx, t, bus, list[0], list[0])
	publish(ctx, t, bus, list...)
	c := consume(ctx, t, bus, events.ConsumeConfig{Run: run})
	for _, d := range fetch(ctx, t, c, len(list)) {
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	untilLag(ctx, t, bus, run, "worker", events.Lag{})
	// An acknowledged message is still stored.
	publish(ctx, t, bus, list...)
	publish(ctx, t, s.newBus(t), list...)
	untilLag(ctx, t, bus, run, "worker", events.Lag{})
	if d := cmp.Diff(idsOf(list), stored(ctx, t, bus, run)); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
}

func (s *suite) sameEventFromManyPublishers(t *testing.T) {
	ctx, bus, run := s.start(t)
	list := posed(run, 50)
	other := s.newBus(t)
	var publishers sync.WaitGroup
	for i := range 8 {
		publishers.Go(func() {
			mine := slices.Clone(list)
			rand.New(rand.NewPCG(uint64(i), 0)).Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			if err := []events.Bus{bus, other}[i%2].Publish(ctx, mine...); err != nil {
				t.Error(err)
			}
		})
	}
	publishers.Wait()
	got := stored(ctx, t, bus, run)
	want := idsOf(list)
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
}

func (s *suite) contradiction(t *testing.T) {
	if !s.features.RefusesContradiction {
		t.Skip("this bus does not look for another event of the same type and group")
	}
	ctx, bus, run := s.start(t)
	drop := func(slot int, stage string) events.Message {
		return eventstest.Encode(events.Caused(eventstest.Posed(run, 1, slot), stage, eventstest.At, &events.GroupDropped{Stage: stage, Reason: events.DropRetries}))
	}
	first := drop(0, "first")
	// The same group with another cause is another event.
	second := eventstest.Encode(events.Caused(eventstest.CodeSampled(eventstest.Posed(run, 1, 0)), "second", eventstest.At,
		&events.GroupDropped{Stage: "second", Reason: events.DropRetries}))
	publish(ctx, t, bus, first)
	for range 2 {
		if err := bus.Publish(ctx, second); !errors.Is(err, events.ErrLineage) {
			t.Errorf("publish: %v, want ErrLineage", err)
		}
	}
	publish(ctx, t, bus, first)
	if d := cmp.Diff([]string{first.ID}, stored(ctx, t, bus, run)); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
}

func (s *suite) orderPerGroup(t *testing.T) {
	ctx, bus, run := s.start(t)
	const groups = 60
	var list []events.Message
	chains := make([][]*events.Event, groups)
	for g := range chains {
		chains[g] = eventstest.Chain(run, 1, g)
	}
	for i := range chains[0] {
		for g := range chains {
			list = append(list, eventstest.Encode(chains[g][i]))
		}
	}
	publish(ctx, t, bus, list...)
	r := read(ctx, t, bus, events.ReadConfig{Run: run})
	got := make(map[string][]string)
	for range list {
		m, _ := next(ctx, t, r)
		got[m.Group] = append(got[m.Group], m.ID)
	}
	want := make(map[string][]string)
	for _, m := range list {
		want[m.Group] = append(want[m.Group], m.ID)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("order per group (-published +read):\n%s", d)
	}
}

func (s *suite) publishAfterContextEnd(t *testing.T) {
	ctx, bus, run := s.start(t)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := bus.Publish(ended, eventstest.Encode(eventstest.Posed(run, 1, 0))); !errors.Is(err, context.Canceled) {
		t.Errorf("publish: %v, want context.Canceled", err)
	}
}
