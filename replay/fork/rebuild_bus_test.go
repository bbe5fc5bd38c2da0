package fork

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

// untilAll ends a rebuild by the number of events, so that no wait decides.
func untilAll(l *eventlog.Log) BusEnd {
	last, _ := l.Last()
	return BusEnd{Quiet: time.Minute, Events: last}
}

// A log that was lost comes back from the bus as the recorder had written it,
// key by key: events, index, refusals, Mistake Book, head and position.
func TestRebuildFromBus(t *testing.T) {
	t.Parallel()
	bothBuses(t, func(t *testing.T, bus SeedBus) {
		messages := replaytest.Tell(t)
		if err := bus.Publish(within(t), messages...); err != nil {
			t.Fatal(err)
		}
		live := eventlogtest.Open(t, t.TempDir(), eventlog.Options{})
		if _, err := eventlogtest.Record(t, bus, live, uint64(len(messages)), eventlog.RecorderConfig{Run: replaytest.Run}); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "log")
		report, err := RebuildFromBus(within(t), bus, replaytest.Run, dir, untilAll(live), eventlog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rebuilt := eventlogtest.Open(t, dir, eventlog.Options{})
		eventlogtest.SameStores(t, live, rebuilt)
		if last, chain := live.Last(); report.Events != last || report.Chain != chain || report.Tests != live.Book().Size() || report.Newest[events.RoleTest].Version != replaytest.Steps {
			t.Errorf("%+v", report)
		}
	})
}

// What a recorder leaves out is left out again: a second payload under an ID,
// what follows from it, what nobody can read.
func TestRebuildFromBusRefusesAsARecorderDoes(t *testing.T) {
	t.Parallel()
	first, second := replaytest.Posed(900, "What is f?"), replaytest.Posed(900, "What is g?")
	messages := append(replaytest.Tell(t), replaytest.Encode(t, first), replaytest.Encode(t, second), replaytest.Encode(t, replaytest.Sampled(second, "g")))
	unreadable := replaytest.Encode(t, replaytest.Rewarded(first, replaytest.Delta("f(0)", 1)))
	unreadable.Data, unreadable.Encoding = []byte{0xc1}, events.EncodingNone
	messages = append(messages, unreadable, replaytest.Encode(t, replaytest.Sampled(first, "f")))
	bus := replaytest.NewMemoryBus(messages...)
	live := eventlogtest.Open(t, t.TempDir(), eventlog.Options{})
	// The recorder publishes one drop, for the lineage that parted.
	if _, err := eventlogtest.Record(t, bus, live, uint64(len(messages)-3+1), eventlog.RecorderConfig{Run: replaytest.Run}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "log")
	report, err := RebuildFromBus(within(t), bus, replaytest.Run, dir, untilAll(live), eventlog.Options{})
	if err != nil || report.Refused != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	eventlogtest.SameStores(t, live, eventlogtest.Open(t, dir, eventlog.Options{}))
}

// A rebuild that is stopped on the way goes on where it was, as a recorder.
func TestRebuildFromBusGoesOn(t *testing.T) {
	t.Parallel()
	messages := replaytest.Tell(t)
	bus := replaytest.NewMemoryBus(messages...)
	dir := filepath.Join(t.TempDir(), "log")
	if _, err := RebuildFromBus(within(t), bus, replaytest.Run, dir, BusEnd{Quiet: time.Minute, Events: 7}, eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	l := eventlogtest.Open(t, dir, eventlog.Options{})
	if last, _ := l.Last(); last != 7 {
		t.Fatalf("%d events", last)
	}
	if _, err := eventlogtest.Record(t, bus, l, uint64(len(messages)), eventlog.RecorderConfig{Run: replaytest.Run}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(messages, eventlogtest.Messages(t, l, eventlog.ReadOptions{})); diff != "" {
		t.Error(diff)
	}
}

// A name that is none, or the wrong server, leaves nothing behind on either side.
func TestRebuildFromBusWithoutTheRun(t *testing.T) {
	bothBuses(t, func(t *testing.T, bus SeedBus) {
		dir := filepath.Join(t.TempDir(), "log")
		if _, err := RebuildFromBus(within(t), bus, replaytest.Run, dir, BusEnd{Quiet: time.Minute}, eventlog.Options{}); !errors.Is(err, ErrNothingOnBus) {
			t.Errorf("a bus without the run: %v", err)
		}
		if has, err := bus.HasRun(t.Context(), replaytest.Run); has || err != nil {
			t.Errorf("the run is on the bus: %t, %v", has, err)
		}
		if left, _ := filepath.Glob(dir + "*"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}
