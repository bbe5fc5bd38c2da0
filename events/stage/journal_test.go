package stage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/stage"
)

// shelf is a journal in memory.
type shelf struct {
	kept     map[string]events.Message
	get, put error // what the calls fail with
}

func (s *shelf) Get(id string) (events.Message, bool, error) {
	m, ok := s.kept[id]
	return m, ok, s.get
}

func (s *shelf) Put(messages []events.Message) error {
	if s.put != nil {
		return s.put
	}
	for _, m := range messages {
		if _, ok := s.kept[m.ID]; !ok {
			s.kept[m.ID] = m
		}
	}
	return nil
}

// What was made of an event is made of it again, though the function would
// make something else.
func TestJournalled(t *testing.T) {
	journal := &shelf{kept: map[string]events.Message{}}
	calls := 0
	handle := stage.Journalled(journal, events.TypeCodeSampled, func(_ context.Context, e *events.Event) ([]*events.Event, error) {
		calls++
		made := bustest.CodeSampled(e)
		made.Payload.(*events.CodeSampled).Version = calls
		return []*events.Event{made}, nil
	})
	// made is the function's call that the event made of e was made in.
	made := func(e *events.Event) int {
		t.Helper()
		list, err := handle(t.Context(), e)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d events, %v", len(list), err)
		}
		return list[0].Payload.(*events.CodeSampled).Version
	}
	decoded := func(e *events.Event) *events.Event {
		t.Helper()
		m := bustest.Encode(e)
		d, err := m.Decode()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first, second := decoded(bustest.Posed(run, 1, 0)), decoded(bustest.Posed(run, 1, 1))
	if a, b, c, d := made(first), made(second), made(first), made(second); a != 1 || b != 2 || c != 1 || d != 2 {
		t.Errorf("made in calls %d, %d and, delivered again, %d, %d", a, b, c, d)
	}

	// Another payload under the first event's ID is another cause.
	posed := *first.Payload.(*events.ProblemPosed)
	posed.Problem.Question += "?"
	other := events.New(run, first.Group, "elsewhere", time.Now(), &posed)
	if made(decoded(other)) != 3 || made(first) != 1 {
		t.Error("what follows from one payload was taken for what follows from another")
	}

	failure := errors.New("no disk")
	journal.put = failure
	if list, err := handle(t.Context(), decoded(bustest.Posed(run, 1, 2))); !errors.Is(err, failure) {
		t.Errorf("%d events that are not kept, %v", len(list), err)
	}
	journal.get = failure
	if _, err := handle(t.Context(), first); !errors.Is(err, failure) {
		t.Errorf("a journal that cannot be read: %v", err)
	}
}
