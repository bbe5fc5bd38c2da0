package replay

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"codea1/events"
	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"
)

// untilAll ends a rebuild by the number of events, so that no wait decides.
func untilAll(l *Log) BusEnd {
	last, _ := l.Last()
	return BusEnd{Quiet: time.Minute, Events: last}
}

// A log that was lost comes back from the bus as the recorder had written it,
// key by key: events, index, refusals, Mistake Book, head and position.
func TestRebuildFromBus(t *testing.T) {
	t.Parallel()
	bothBuses(t, func(t *testing.T, bus SeedBus) {
		messages := tell(t)
		if err := bus.Publish(within(t), messages...); err != nil {
			t.Fatal(err)
		}
		live := openLog(t, t.TempDir(), Options{})
		if _, err := record(t, bus, live, uint64(len(messages)), RecorderConfig{}); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "log")
		report, err := RebuildFromBus(within(t), bus, testRun, dir, untilAll(live), Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		rebuilt := openLog(t, dir, Options{})
		sameStores(t, live, rebuilt)
		if last, chain := live.Last(); report.Events != last || report.Chain != chain || report.Tests != live.Book().Size() || report.Newest[events.RoleTest].Version != storySteps {
			t.Errorf("%+v", report)
		}
	})
}

// What a recorder leaves out is left out again: a second payload under an ID,
// what follows from it, what nobody can read.
func TestRebuildFromBusRefusesAsARecorderDoes(t *testing.T) {
	t.Parallel()
	first, second := posed(900, "What is f?"), posed(900, "What is g?")
	messages := append(tell(t), encode(t, first), encode(t, second), encode(t, sampled(second, "g")))
	unreadable := encode(t, rewarded(first, delta("f(0)", 1)))
	unreadable.Data, unreadable.Encoding = []byte{0xc1}, events.EncodingNone
	messages = append(messages, unreadable, encode(t, sampled(first, "f")))
	bus := newMemoryBus(messages...)
	live := openLog(t, t.TempDir(), Options{})
	// The recorder publishes one drop, for the lineage that parted.
	if _, err := record(t, bus, live, uint64(len(messages)-3+1), RecorderConfig{}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "log")
	report, err := RebuildFromBus(within(t), bus, testRun, dir, untilAll(live), Options{}, nil)
	if err != nil || report.Refused != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	sameStores(t, live, openLog(t, dir, Options{}))
}

// A rebuild that is stopped on the way goes on where it was, as a recorder.
func TestRebuildFromBusGoesOn(t *testing.T) {
	t.Parallel()
	messages := tell(t)
	bus := newMemoryBus(messages...)
	dir := filepath.Join(t.TempDir(), "log")
	if _, err := RebuildFromBus(within(t), bus, testRun, dir, BusEnd{Quiet: time.Minute, Events: 7}, Options{}, nil); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, dir, Options{})
	if last, _ := l.Last(); last != 7 {
		t.Fatalf("%d events", last)
	}
	if _, err := record(t, bus, l, uint64(len(messages)), RecorderConfig{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(messages, scanAll(t, l, ScanOptions{})); diff != "" {
		t.Error(diff)
	}
}

// A name that is none, or the wrong server, leaves nothing behind on either side.
func TestRebuildFromBusWithoutTheRun(t *testing.T) {
	bothBuses(t, func(t *testing.T, bus SeedBus) {
		dir := filepath.Join(t.TempDir(), "log")
		if _, err := RebuildFromBus(within(t), bus, testRun, dir, BusEnd{Quiet: time.Minute}, Options{}, nil); !errors.Is(err, ErrNothingOnBus) {
			t.Errorf("a bus without the run: %v", err)
		}
		if has, err := bus.HasRun(t.Context(), testRun); has || err != nil {
			t.Errorf("the run is on the bus: %t, %v", has, err)
		}
		if left, _ := filepath.Glob(dir + "*"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// sameStores compares two logs key by key, with what they leave when they are
// closed.
func sameStores(t *testing.T, x, y *Log) {
	t.Helper()
	if err := errors.Join(x.Close(), y.Close()); err != nil {
		t.Fatal(err)
	}
	x, y = openLog(t, x.dir, Options{}), openLog(t, y.dir, Options{})
	a, b := dump(t, x), dump(t, y)
	for key, value := range a {
		if !bytes.Equal(b[key], value) {
			t.Errorf("key %q: %x, rebuilt %x", key, value, b[key])
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			t.Errorf("key %q is new", key)
		}
	}
	if !bytes.Equal(x.Book().Encode(), y.Book().Encode()) {
		t.Error("the Mistake Book is another")
	}
}

func dump(t *testing.T, l *Log) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.DefaultIteratorOptions)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			t.Fatal(err)
		}
		all[string(it.Item().Key())] = append(value, it.Item().UserMeta())
	}
	return all
}
