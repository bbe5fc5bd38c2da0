package eventlog

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dgraph-io/ristretto/v2/z"

	"codea1/events"
	"codea1/replay/internal/replaytest"
)

// mustBegin begins a batch or fails the test.
func mustBegin(t *testing.T, l *Log, entries []Incoming) *Pending {
	t.Helper()
	p, err := l.Begin(t.Context(), entries)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A batch is compared with the batch before it, even if that is not on disk yet: with
// its payloads and with its refusals.
func TestBeginSeesTheBatchBefore(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), Options{})
	p := replaytest.Posed(1, "What is f?")
	first := replaytest.Encode(t, p)
	stands, lost := replaytest.Sampled(p, "return 1"), replaytest.Sampled(p, "return 2")
	standing, other := replaytest.Encode(t, stands), replaytest.Encode(t, lost)
	child := replaytest.Rewarded(lost)
	orphan := replaytest.Encode(t, child)
	grandchild := replaytest.Encode(t, replaytest.Rewarded(child))
	batches := []*Pending{
		mustBegin(t, l, at(0, first, standing)),
		mustBegin(t, l, at(2, first, other, orphan)),
		mustBegin(t, l, recorded(5, orphan, grandchild, standing)),
	}
	for i, want := range []struct{ fresh, duplicates, conflicts int }{{2, 0, 0}, {0, 1, 2}, {0, 1, 2}} {
		appended, err := batches[i].Wait()
		if err != nil || len(appended.Messages) != want.fresh || appended.Duplicates != want.duplicates || len(appended.Conflicts) != want.conflicts {
			t.Errorf("batch %d: %+v, %v", i, appended, err)
		}
		for _, c := range appended.Conflicts {
			if c.Standing != standing.ID {
				t.Errorf("batch %d: %s stands in the way of %s, want %s", i, c.Standing, c.Message.Type, standing.ID)
			}
		}
	}
	if report := mustVerify(t, l); report.Events != 2 || report.Refused == 0 || l.Position() != "p7" {
		t.Errorf("%+v at %s", report, l.Position())
	}
}

// No batch is appended after a failed commit.
func TestBeginAfterAFailedCommit(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), Options{})
	mustAppend(t, l, at(0, replaytest.Group(t, 1)...))
	l.committing.Lock()
	behind := make(chan error)
	go func() {
		_, err := l.Append(t.Context(), at(3, replaytest.Group(t, 2)...))
		behind <- err
	}()
	failure := errors.New("the disk is gone")
	l.failed = failure
	l.committing.Unlock()
	if err := <-behind; !errors.Is(err, failure) {
		t.Errorf("append: %v", err)
	}
	if seq, _ := l.Last(); seq != 3 {
		t.Errorf("the log ends at %d", seq)
	}
}

// Several writers append the same events at the same time: each event is stored once.
func TestAppendAtOnce(t *testing.T) {
	t.Parallel()
	l := openLog(t, t.TempDir(), scratch)
	const writers, slots = 4, 40
	var failures [writers]error
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for slot := range slots {
				// Neighbours append the same groups.
				if _, err := l.Append(t.Context(), at(0, replaytest.Group(t, slot+w%2)...)); err != nil {
					failures[w] = err
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(failures[:]...); err != nil {
		t.Fatal(err)
	}
	if report := mustVerify(t, l); report.Events != 3*(slots+1) {
		t.Errorf("%d events", report.Events)
	}
}

// The filter excludes only IDs that the log does not have, and nearly all of them:
// before and after the log is opened again.
func TestFilter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, scratch)
	var there []events.Message
	for slot := range 100 {
		there = append(there, replaytest.Group(t, slot)...)
	}
	mustAppend(t, l, at(0, there...))
	check := func() {
		t.Helper()
		for i := range there {
			if l.filter.excludes(parseID(there[i].ID)) {
				t.Fatalf("%s is ruled out", there[i].ID)
			}
		}
		ruledOut := 0
		for i := range 1000 {
			if l.filter.excludes(eventID{byte(i), byte(i >> 8)}) {
				ruledOut++
			}
		}
		if ruledOut < 900 {
			t.Errorf("%d of 1000 strange IDs are ruled out", ruledOut)
		}
	}
	check()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, dir, scratch)
	mustAppend(t, l, at(len(there), there...))
	l.background.Wait()
	check()
}

// The filters grow with a log up to a bound.
func TestFilterGrows(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	id := func() (id eventID) {
		binary.LittleEndian.PutUint64(id[:], r.Uint64())
		return id
	}
	s := newFilter()
	s.older.Store(newBloom(0))
	var ids []eventID
	for range 5 * filterFirst {
		ids = append(ids, id())
		s.add(ids[len(ids)-1])
	}
	mistaken := 0
	for i := range ids {
		if s.excludes(ids[i]) {
			t.Fatalf("ID %d is ruled out", i)
		}
		if !s.excludes(id()) {
			mistaken++
		}
	}
	if len(s.newer) != 3 || mistaken > len(ids)/20 {
		t.Errorf("%d filters, %d of %d IDs taken for others", len(s.newer), mistaken, len(ids))
	}
	s.newer, s.room = make([]*z.Bloom, 12), 0
	s.add(id())
	if !s.off || s.excludes(id()) {
		t.Error("knows more than it can hold")
	}
}
