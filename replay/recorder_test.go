package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"codea1/events"
	"github.com/google/go-cmp/cmp"
)

// memoryBus keeps what is published, without looking at IDs, and reads it in
// order; the position is the number of messages read.
type memoryBus struct {
	mu       sync.Mutex
	changed  chan struct{}
	messages []events.Message
	refuse   error // what Publish returns
}

func newMemoryBus(messages ...events.Message) *memoryBus {
	return &memoryBus{messages: slices.Clone(messages), changed: make(chan struct{})}
}

func (b *memoryBus) Publish(_ context.Context, messages ...events.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return b.refuse
	}
	b.messages = append(b.messages, messages...)
	close(b.changed)
	b.changed = make(chan struct{})
	return nil
}

func (b *memoryBus) HasRun(context.Context, string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.messages) > 0, nil
}

func (b *memoryBus) Read(_ context.Context, config events.ReadConfig) (events.Reader, error) {
	r := &memoryReader{bus: b}
	if config.From != events.Start {
		n, err := strconv.Atoi(string(config.From))
		if err != nil {
			return nil, err
		}
		r.next = n
	}
	return r, nil
}

type memoryReader struct {
	bus  *memoryBus
	next int
}

func (r *memoryReader) Next(ctx context.Context) (events.Message, events.Position, error) {
	for {
		r.bus.mu.Lock()
		messages, changed := r.bus.messages, r.bus.changed
		r.bus.mu.Unlock()
		if r.next < len(messages) {
			r.next++
			return messages[r.next-1], events.Position(strconv.Itoa(r.next)), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return events.Message{}, "", ctx.Err()
		}
	}
}

func (r *memoryReader) Close() error { return nil }

// record runs a recorder until its log holds as many events.
func record(t *testing.T, bus Bus, l *Log, until uint64, config RecorderConfig) (heard []events.Message, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config.Run = testRun
	config.OnAppend = func(_ context.Context, appended []events.Message) error {
		heard = append(heard, appended...)
		if last, _ := l.Last(); last >= until {
			cancel()
		}
		return nil
	}
	r, err := NewRecorder(bus, l, config)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Run(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatal("the recorder did not get there")
	}
	return heard, err
}

func TestRecorderGoesOnWhereTheLogEnds(t *testing.T) {
	t.Parallel()
	var messages []events.Message
	for slot := range 30 {
		messages = append(messages, group(t, slot)...)
	}
	bus := newMemoryBus(messages[:50]...)
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	heard, err := record(t, bus, l, 50, RecorderConfig{MaxBatch: 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := bus.Publish(t.Context(), messages[40:]...); err != nil { // some of them again
		t.Fatal(err)
	}
	l = openLog(t, dir, Options{})
	more, err := record(t, bus, l, 90, RecorderConfig{MaxBatchBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(messages, append(heard, more...)); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(messages, scanAll(t, l, ScanOptions{})); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if l.Position() != "100" {
		t.Errorf("position %q, want 100", l.Position())
	}
	mustVerify(t, l)
}

// A lineage that parts drops its group, once, even when the recorder dies
// between refusing an event and publishing the drop.
func TestRecorderDropsPartedLineage(t *testing.T) {
	p := posed(1, "What is f?")
	messages := []events.Message{encode(t, p)}
	stands, lost := sampled(p, "return 1"), sampled(p, "return 2")
	messages = append(messages, encode(t, stands), encode(t, lost))
	messages = append(messages, encode(t, rewarded(lost, delta("f(2)", 1))))
	bus := newMemoryBus(messages...)
	bus.refuse = errors.New("broker is gone")
	l := openLog(t, t.TempDir(), Options{})
	if _, err := record(t, bus, l, 3, RecorderConfig{}); !errors.Is(err, bus.refuse) {
		t.Fatalf("recorder: %v, want %v", err, bus.refuse)
	}
	if l.Position() != "4" {
		t.Fatalf("position %q, want 4: the refusal is committed", l.Position())
	}
	bus.refuse = nil
	heard, err := record(t, bus, l, 3, RecorderConfig{Source: "log-0", Now: func() time.Time { return testTime }})
	if err != nil {
		t.Fatal(err)
	}
	if len(heard) != 1 || len(bus.messages) != 5 {
		t.Fatalf("heard %d events, bus has %d", len(heard), len(bus.messages))
	}
	e, err := heard[0].Decode()
	if err != nil {
		t.Fatal(err)
	}
	plan := testPlan(1)
	want := &events.GroupDropped{
		Purpose: plan.Purpose, Step: plan.Step, Slot: plan.Slot, Groups: plan.Groups, Stage: "log-0", Reason: events.DropLineage,
		Detail: fmt.Sprintf("code.sampled %s was published with two payloads; the first stands, and events that follow from the other are left out", messages[1].ID),
	}
	if diff := cmp.Diff(want, e.Payload); diff != "" || e.CausationID != messages[1].ID || e.Group != plan.GroupID() {
		t.Errorf("dropped %+v (-want +got):\n%s", e.Envelope, diff)
	}
	mustVerify(t, l)
}

// A recorder keeps the tokens of the last steps only, if it is told to, and
// leaves whole what is still to be trained on.
func TestRecorderKeepsTokensOfTheLastSteps(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.start()
	for step := 1; step <= 4; step++ {
		s.step(step)
	}
	s.group(s.plan(events.PurposeTrain, 5, 0))
	l := openLog(t, t.TempDir(), Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := NewRecorder(newMemoryBus(s.messages...), l, RecorderConfig{Run: testRun, KeepTokens: 2})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	const perStep = storyGroups * 2
	for l.compacted().events < 2*perStep && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if report := mustVerify(t, l); report.Compacted != 2*perStep {
		t.Errorf("%d payloads are compacted, want %d", report.Compacted, 2*perStep)
	}
	for r, err := range l.Scan(t.Context(), ScanOptions{Types: tokenTypes}) {
		if err != nil {
			t.Fatal(err)
		}
		if step, _ := stepOf(&r.Message); r.Compacted != (step <= 2) {
			t.Errorf("step %d: compacted %t", step, r.Compacted)
		}
	}
}

func TestRecorderEndsWithItsCollaborators(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{})
	bus := newMemoryBus(group(t, 1)...)
	broken := errors.New("curriculum is broken")
	r, err := NewRecorder(bus, l, RecorderConfig{Run: testRun, OnAppend: func(context.Context, []events.Message) error { return broken }})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("run: %v, want %v", err, broken)
	}
	for _, config := range []RecorderConfig{{}, {Run: "a b"}, {Run: testRun, MaxBatch: -1}, {Run: testRun, KeepTokens: -1}} {
		if _, err := NewRecorder(bus, l, config); err == nil || !strings.HasPrefix(err.Error(), "recorder: ") {
			t.Errorf("%+v: %v", config, err)
		}
	}
}
