package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus/natstest"
	"codea1/events/outbox"
	"codea1/events/stage"
)

const run = "r1"

// memory is a store in memory.
type memory struct {
	messages map[string]events.Message
	puts     int
	get, put error // returned by the calls
}

func newMemory() *memory { return &memory{messages: map[string]events.Message{}} }

func (s *memory) Get(id string) (events.Message, bool, error) {
	m, ok := s.messages[id]
	return m, ok, s.get
}

func (s *memory) Put(messages []events.Message) error {
	if s.put != nil {
		return s.put
	}
	s.puts++
	for _, m := range messages {
		if _, ok := s.messages[m.ID]; !ok {
			s.messages[m.ID] = m
		}
	}
	return nil
}

// counted is a handler that puts the number of its call into its outputs.
func counted() stage.Handler {
	calls := 0
	return stage.Each(func(_ context.Context, e *events.Event) ([]*events.Event, error) {
		calls++
		made := eventstest.CodeSampled(e)
		made.Payload.(*events.CodeSampled).Version = calls
		return []*events.Event{made}, nil
	})
}

// posed returns the problem.posed of a slot as a worker gets it.
func posed(t *testing.T, slot int) *events.Event {
	t.Helper()
	m := eventstest.Encode(eventstest.Posed(run, 1, slot))
	e, err := m.Decode()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// version returns the number of the call that made the output.
func version(t *testing.T, r stage.Result) int {
	t.Helper()
	if r.Err != nil || len(r.Events) != 1 {
		t.Fatalf("%d events, %v", len(r.Events), r.Err)
	}
	return r.Events[0].Payload.(*events.CodeSampled).Version
}

// A redelivered event has the same output, though the handler would make
// another one.
func TestHandlerMakesAnOutputOnce(t *testing.T) {
	store := newMemory()
	handle := outbox.Handler(store, events.TypeCodeSampled, counted())
	made := func(list ...*events.Event) []int {
		t.Helper()
		var versions []int
		for _, r := range handle(t.Context(), list) {
			versions = append(versions, version(t, r))
		}
		return versions
	}
	first, second, third := posed(t, 0), posed(t, 1), posed(t, 2)
	if d := cmp.Diff([]int{1, 2}, made(first, second)); d != "" || store.puts != 1 {
		t.Errorf("%d puts, versions %s", store.puts, d)
	}
	if d := cmp.Diff([]int{1, 3, 2}, made(posed(t, 0), third, posed(t, 1))); d != "" {
		t.Error(d)
	}

	// Another payload under the first event's ID is another cause.
	payload := *first.Payload.(*events.ProblemPosed)
	payload.Problem.Question += "?"
	m := eventstest.Encode(events.New(run, first.Group, "elsewhere", time.Now(), &payload))
	other, err := m.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int{4}, made(other)); d != "" {
		t.Errorf("the stored output was used for another payload: %s", d)
	}
	if d := cmp.Diff([]int{1}, made(first)); d != "" {
		t.Errorf("the first output did not stay: %s", d)
	}
}

func TestHandlerPublishesOnlyWhatIsStored(t *testing.T) {
	store := newMemory()
	handle := outbox.Handler(store, events.TypeCodeSampled, counted())
	failure := errors.New("disk is full")
	store.put = failure
	if r := handle(t.Context(), []*events.Event{posed(t, 0)})[0]; !errors.Is(r.Err, failure) || len(r.Events) > 0 {
		t.Errorf("%d events that are not stored, %v", len(r.Events), r.Err)
	}
	store.get = failure
	if r := handle(t.Context(), []*events.Event{posed(t, 0)})[0]; !errors.Is(r.Err, failure) {
		t.Errorf("from a store that cannot be read: %v", r.Err)
	}
}

// Errors of single events reach the stage, and the other outputs are stored.
func TestHandlerPassesErrors(t *testing.T) {
	store := newMemory()
	broken := errors.New("out of memory")
	handle := outbox.Handler(store, events.TypeCodeSampled, stage.Each(func(_ context.Context, e *events.Event) ([]*events.Event, error) {
		made := eventstest.CodeSampled(e)
		switch e.Payload.(*events.ProblemPosed).Plan.Slot {
		case 1:
			return nil, broken
		case 2: // too large for a message
			sampled := made.Payload.(*events.CodeSampled)
			for i := range sampled.Answers {
				sampled.Answers[i].Text = strings.Repeat("x", events.MaxTextBytes)
			}
			for n := len(sampled.Answers); len(sampled.Answers) <= events.MaxPayloadBytes/events.MaxTextBytes; {
				sampled.Answers = append(sampled.Answers, sampled.Answers[:n]...)
			}
			sampled.Posed.Plan.Answers = len(sampled.Answers)
		case 3: // not well-formed
			made.Payload.(*events.CodeSampled).Version = -1
		}
		return []*events.Event{made}, nil
	}))
	results := handle(t.Context(), []*events.Event{posed(t, 0), posed(t, 1), posed(t, 2), posed(t, 3)})
	if results[0].Err != nil || !errors.Is(results[1].Err, broken) || results[2].Err != nil || results[3].Err == nil {
		t.Errorf("%+v", results)
	}
	if len(store.messages) != 1 || len(results[2].Events) != 1 {
		t.Errorf("%d outputs are stored, want 1; the stage must see the output that is too large", len(store.messages))
	}
	short := outbox.Handler(store, events.TypeCodeSampled, func(context.Context, []*events.Event) []stage.Result { return make([]stage.Result, 1) })
	if r := short(t.Context(), []*events.Event{posed(t, 4), posed(t, 5)}); len(r) == 2 {
		t.Error("a missing result was filled in")
	}
}

func TestEventDeliveredTwiceIsHandledOnce(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	calls := counted()
	handle := outbox.Handler(newMemory(), events.TypeCodeSampled, func(ctx context.Context, batch []*events.Event) []stage.Result {
		inside <- struct{}{}
		<-leave
		return calls(ctx, batch)
	})
	first := make(chan stage.Result, 1)
	go func() { first <- handle(t.Context(), []*events.Event{posed(t, 0)})[0] }()
	<-inside
	if r := handle(t.Context(), []*events.Event{posed(t, 0)})[0]; r.Err == nil || !strings.Contains(r.Err.Error(), "snooze") {
		t.Errorf("a second delivery: %v, want a snooze", r.Err)
	}
	close(leave)
	version(t, <-first)
	if v := version(t, handle(t.Context(), []*events.Event{posed(t, 0)})[0]); v != 1 {
		t.Errorf("made in call %d", v)
	}
}

// The stage counts the events that its outbox answers.
func TestReplaysAreCounted(t *testing.T) {
	bus := natstest.Bus(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	store := newMemory()
	made := eventstest.Encode(eventstest.CodeSampled(eventstest.Posed(run, 1, 0)))
	store.messages[made.ID] = made
	registry := prometheus.NewRegistry()
	s, err := stage.New(stage.Config{
		Bus: bus, Run: run, Name: "worker", Types: []events.Type{events.TypeProblemPosed}, Registerer: registry,
		Handler: outbox.Handler(store, events.TypeCodeSampled, counted()),
	})
	if err != nil {
		t.Fatal(err)
	}
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(working) }()
	for slot := range 3 {
		if err := bus.Publish(ctx, eventstest.Encode(eventstest.Posed(run, 1, slot))); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := bus.Read(ctx, events.ReadConfig{Run: run, Types: []events.Type{events.TypeCodeSampled}})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for range 3 {
		if _, _, err := reader.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	replayed := -1.0
	for _, f := range families {
		if f.GetName() == "codea1_stage_replayed_total" {
			replayed = f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	if replayed != 1 || len(store.messages) != 3 {
		t.Errorf("%v events were replayed and %d are stored, want 1 and 3", replayed, len(store.messages))
	}
}
