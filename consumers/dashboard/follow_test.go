package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/natsbus/natstest"
)

// longEnough is the longest wait of a test.
const longEnough = 30 * time.Second

func encode(t testing.TB, es ...*events.Event) (out []events.Message) {
	t.Helper()
	for _, e := range es {
		m, err := events.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// follow runs Follow for run r1 until the test ends.
func follow(t testing.TB, f *Follower, bus Bus) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Follow(ctx, bus, "r1", events.Start) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("follow: %v", err)
		}
	})
}

func waitFor(t testing.TB, f *Follower, what string, until func(*State) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	if err := f.Wait(ctx, until); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// start returns the first events of a run of two steps, the first of which is
// trained.
func start() []*events.Event {
	s := &script{at: noon}
	return []*events.Event{
		s.started(1, 2),
		s.rewarded(1, 0, 1, 0.5, 0.25, events.BookDelta{Call: "f(1)", Expected: "1", Change: 1}),
		s.updated(events.RoleCode, 1), s.updated(events.RoleTest, 1),
	}
}

func TestFollowReadsTheBus(t *testing.T) {
	bus := natstest.Bus(t)
	if err := bus.Publish(t.Context(), encode(t, start()...)...); err != nil {
		t.Fatal(err)
	}
	f := NewFollower()
	if f.Following() {
		t.Error("following before Follow")
	}
	follow(t, f, bus)
	waitFor(t, f, "step 1", func(s *State) bool { return s.Trained() == 1 && s.Book.Size() == 1 })

	// Later events are read too.
	s := &script{at: noon.Add(time.Second)}
	if err := bus.Publish(t.Context(), encode(t, s.finished(1, events.RunStopped))...); err != nil {
		t.Fatal(err)
	}
	waitFor(t, f, "the end", func(s *State) bool { return s.Finished == events.RunStopped })
	if !f.Following() {
		t.Error("not following while following")
	}
	f.View(func(s *State) {
		if s.Total() != 5 {
			t.Errorf("%d events were counted, want 5", s.Total())
		}
	})
}

func TestFollowEndsWithTheBus(t *testing.T) {
	bus := natstest.Bus(t)
	f := NewFollower()
	done := make(chan error, 1)
	go func() { done <- f.Follow(context.Background(), bus, "r1", events.Start) }()
	if err := bus.Publish(t.Context(), encode(t, start()...)...); err != nil {
		t.Fatal(err)
	}
	waitFor(t, f, "step 1", func(s *State) bool { return s.Trained() == 1 })
	if err := bus.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("have %v, want nil after the bus was closed", err)
	}
	if f.Following() {
		t.Error("still following")
	}
}

// reader returns messages and then an error.
type reader struct {
	messages []events.Message
	err      error
}

func (r *reader) Read(context.Context, events.ReadConfig) (events.Reader, error) { return r, nil }
func (r *reader) Close() error                                                   { return nil }
func (r *reader) Next(context.Context) (events.Message, events.Position, error) {
	if len(r.messages) == 0 {
		return events.Message{}, "", r.err
	}
	m := r.messages[0]
	r.messages = r.messages[1:]
	return m, "1", nil
}

// TestFollowCountsMessagesThatAreNoEvents: such a message is counted and changes
// nothing else.
func TestFollowCountsMessagesThatAreNoEvents(t *testing.T) {
	messages := encode(t, start()...)
	var hostile []events.Message
	for _, m := range messages {
		bytes, id := m, m
		bytes.Encoding, bytes.Data = events.EncodingNone, []byte{0xc1}
		id.ID = strings.Repeat("ab", 16)
		hostile = append(hostile, bytes, id, m)
	}
	gone := errors.New("the broker has ended")
	want, got := NewFollower(), NewFollower()
	for f, list := range map[*Follower][]events.Message{want: messages, got: hostile} {
		if err := f.Follow(t.Context(), &reader{messages: list, err: gone}, "r1", events.Start); !errors.Is(err, gone) || !strings.Contains(err.Error(), "r1") {
			t.Errorf("have %v, want %v and the run's name", err, gone)
		}
	}
	got.View(func(s *State) {
		if s.Quarantined != int64(2*len(messages)) {
			t.Errorf("%d messages are quarantined", s.Quarantined)
		}
		if len(s.refusals) != min(maxRefusals, 2*len(messages)) {
			t.Errorf("%d refusals are listed", len(s.refusals))
		}
		s.Quarantined, s.refusals = 0, nil
	})
	state := func(f *Follower) (text string) {
		f.View(func(s *State) {
			raw, err := json.Marshal(s.Snapshot())
			if err != nil {
				t.Fatal(err)
			}
			text = string(raw)
		})
		return text
	}
	if d := cmp.Diff(state(want), state(got)); d != "" {
		t.Errorf("another state:\n%s", d)
	}
}

func TestSubscribersAreNotifiedOnceForManyChanges(t *testing.T) {
	f := NewFollower()
	changes, unsubscribe := f.Subscribe()
	<-changes // the value at the start
	for _, m := range encode(t, start()...) {
		f.apply(&m)
	}
	<-changes
	select {
	case <-changes:
		t.Error("two notifications for one read")
	default:
	}
	unsubscribe()
	m := encode(t, (&script{at: noon}).finished(1, events.RunStopped))
	f.apply(&m[0])
	select {
	case <-changes:
		t.Error("a notification after unsubscribing")
	default:
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewFollower().Wait(ctx, func(*State) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("have %v", err)
	}
}

func showBar(t *testing.T, terminal bool) string {
	t.Helper()
	f := NewFollower()
	var out bytes.Buffer
	bar := NewBar(f, &out, terminal)
	bar.every = time.Nanosecond
	es := start()
	s := &script{at: noon.Add(time.Minute)}
	es = append(es, s.rewarded(2, 0, 1, 0.5, 0.25), s.scored("after", 2, 0, 2, events.EvalScored{Correct: []bool{true, false}}), s.finished(1, events.RunStopped))
	for _, m := range encode(t, es...) {
		f.apply(&m)
		if err := bar.show(); err != nil {
			t.Fatal(err)
		}
	}
	if err := bar.Run(t.Context()); err != nil { // returns because the run is finished
		t.Fatal(err)
	}
	return out.String()
}

func TestBarWritesLinesWithoutATerminal(t *testing.T) {
	want := strings.Join([]string{
		"starting",
		"step 1/2  pass 0.75  hist 0.50  code 0.25  test 0.25",
		"step 2/2  pass 0.75  hist 0.50  code 0.25  test 0.25",
		"evaluate after step 2  1/2 groups  avg@2 50.0%  1m00s left of this evaluation",
		"stopped after 1 of 2 steps",
		"",
	}, "\n")
	if got := showBar(t, false); got != want {
		t.Errorf("have\n%s\nwant\n%s", got, want)
	}
}

func TestBarDrawsInPlaceOnATerminal(t *testing.T) {
	got := showBar(t, true)
	for _, want := range []string{"step 1/2", "step 2/2", "100% [=", "evaluate after step 2", " 50% [="} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	// One line for the training and one for the evaluation. The cursor is below.
	if n := strings.Count(got, "\n"); n != 2 || !strings.HasSuffix(got, "\n") {
		t.Errorf("%d lines: %q", n, got)
	}
}

type full struct{ error }

func (f full) Write([]byte) (int, error) { return 0, f.error }

func TestBarReportsABrokenOutput(t *testing.T) {
	broken := errors.New("no space left")
	if err := NewBar(NewFollower(), full{broken}, false).Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("have %v, want %v", err, broken)
	}
}
