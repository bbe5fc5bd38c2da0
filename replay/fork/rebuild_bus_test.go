package fork

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

// quiet is the pause after which a rebuild takes the bus to be at its end.
const quiet = 5 * time.Second

// atOnce is that pause for a MemoryBus. Its readers return a message before they
// look at the time.
const atOnce = time.Millisecond

// garbage returns messages of every type of the story that are no events, each with
// a type and a group of its own.
func garbage(story []events.Message) (all []events.Message) {
	for i, m := range story {
		m.Group = fmt.Sprintf("garbage-%d", i)
		switch i % 5 {
		case 0:
			m.Encoding, m.Data = events.EncodingNone, []byte{0xc1}
		case 1:
			m.Data = m.Data[:len(m.Data)-1]
		case 2:
			m.SchemaVersion = 999
		case 3:
			m.Time = m.Time.AddDate(7000, 0, 0)
		case 4:
			m.Encoding = "br"
		}
		all = append(all, m)
	}
	return all
}

// A rebuilt log has the same keys and values as the recorder's log: events, index,
// refusals, quarantine, Mistake Book, head and position.
func TestRebuildFromBus(t *testing.T) {
	t.Parallel()
	bothBuses(t, func(t *testing.T, bus SeedBus) {
		messages := replaytest.Tell(t)
		noEvents := garbage(messages)
		for i := range messages {
			if err := bus.Publish(within(t), noEvents[i], messages[i]); err != nil {
				t.Fatal(err)
			}
		}
		live := eventlogtest.Open(t, t.TempDir(), eventlog.Options{})
		if _, err := record(t, bus, live, uint64(len(messages)), eventlog.RecorderConfig{Run: replaytest.Run}); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "log")
		var read, total uint64
		report, err := RebuildFromBus(within(t), bus, replaytest.Run, dir, quiet, eventlog.Options{}, func(done, of uint64) { read, total = done, of })
		if err != nil {
			t.Fatal(err)
		}
		if all := uint64(len(messages) + len(noEvents)); read != all || total != all {
			t.Errorf("the progress ended with %d of %d messages, want %d", read, total, all)
		}
		rebuilt := eventlogtest.Open(t, dir, eventlog.Options{})
		eventlogtest.SameStores(t, live, rebuilt)
		if last, chain := live.Last(); report.Events != last || report.Chain != chain || report.Tests != live.Book().Size() || report.Newest[events.RoleTest].Version != replaytest.Steps {
			t.Errorf("%+v", report)
		}
		if q := report.Quarantine; q.Messages != uint64(len(noEvents)) || q.Kept != q.Messages || q != live.Quarantine() {
			t.Errorf("%d messages are no events, quarantined %+v", len(noEvents), q)
		}
	})
}

// A rebuild refuses the same events as a recorder: a second payload under an ID,
// its descendants, and events that cannot be decoded.
func TestRebuildFromBusRefusesAsARecorderDoes(t *testing.T) {
	t.Parallel()
	first, second := replaytest.Posed(900, "What is f?"), replaytest.Posed(900, "What is g?")
	messages := append(replaytest.Tell(t), replaytest.Encode(t, first), replaytest.Encode(t, second), replaytest.Encode(t, replaytest.Sampled(second, "g")))
	unreadable := replaytest.Encode(t, replaytest.Rewarded(first, replaytest.Delta("f(0)", 1)))
	unreadable.Data, unreadable.Encoding = []byte{0xc1}, events.EncodingNone
	messages = append(messages, unreadable, replaytest.Encode(t, replaytest.Sampled(first, "f")))
	bus := replaytest.NewMemoryBus(messages...)
	live := eventlogtest.Open(t, t.TempDir(), eventlog.Options{})
	// The recorder publishes one group.dropped event, for the descendant.
	if _, err := record(t, bus, live, uint64(len(messages)-3+1), eventlog.RecorderConfig{Run: replaytest.Run}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "log")
	report, err := RebuildFromBus(within(t), bus, replaytest.Run, dir, atOnce, eventlog.Options{}, nil)
	if err != nil || report.Refused != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	eventlogtest.SameStores(t, live, eventlogtest.Open(t, dir, eventlog.Options{}))
}

// A recorder continues from the position of a rebuilt log.
func TestRecorderContinuesARebuiltLog(t *testing.T) {
	t.Parallel()
	messages := replaytest.Tell(t)
	bus := replaytest.NewMemoryBus(messages[:7]...)
	dir := filepath.Join(t.TempDir(), "log")
	if _, err := RebuildFromBus(within(t), bus, replaytest.Run, dir, atOnce, eventlog.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := bus.Publish(t.Context(), messages[7:]...); err != nil {
		t.Fatal(err)
	}
	l := eventlogtest.Open(t, dir, eventlog.Options{})
	if last, _ := l.Last(); last != 7 {
		t.Fatalf("%d events", last)
	}
	if _, err := record(t, bus, l, uint64(len(messages)), eventlog.RecorderConfig{Run: replaytest.Run}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(messages, eventlogtest.Messages(t, l, eventlog.ReadOptions{})); diff != "" {
		t.Error(diff)
	}
}

// A rebuild of an absent run creates neither a log nor a run on the bus.
func TestRebuildFromBusWithoutTheRun(t *testing.T) {
	t.Parallel()
	bothBuses(t, func(t *testing.T, bus SeedBus) {
		dir := filepath.Join(t.TempDir(), "log")
		if _, err := RebuildFromBus(within(t), bus, replaytest.Run, dir, quiet, eventlog.Options{}, nil); !errors.Is(err, ErrNothingOnBus) {
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
