package eventlog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/replay/internal/replaytest"
)

// Two code workers answered the same problem, and both payloads are on the bus under one
// ID. The first stands, with its descendants.
func TestFirstPayloadStands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	p := replaytest.Posed(1, "What is f?")
	mp := replaytest.Encode(t, p)
	stands, lost := replaytest.Sampled(p, "return 1"), replaytest.Sampled(p, "return 2")
	mStands, mLost := replaytest.Encode(t, stands), replaytest.Encode(t, lost)
	fromStands, fromLost := replaytest.Rewarded(stands, replaytest.Delta("f(1)", 1)), replaytest.Rewarded(lost, replaytest.Delta("f(2)", 1))
	mFromStands, mFromLost := replaytest.Encode(t, fromStands), replaytest.Encode(t, fromLost)
	if mFromStands.ID != mFromLost.ID {
		t.Fatal("IDs follow from the cause's ID alone")
	}
	farFromLost := events.Caused(fromLost, "x", replaytest.Time, &events.StageHeartbeat{Stage: "x"})
	mFarFromLost := replaytest.Encode(t, farFromLost)

	appended := mustAppend(t, l, recorded(0, mp, mStands, mLost, mFromLost, mFarFromLost))
	want := []Conflict{
		{Message: mLost, Standing: mStands.ID},
		{Message: mFromLost, Standing: mStands.ID},
		{Message: mFarFromLost, Standing: mStands.ID},
	}
	if diff := cmp.Diff(want, appended.Conflicts); diff != "" || appended.Last != 2 {
		t.Fatalf("last %d; conflicts (-want +got):\n%s", appended.Last, diff)
	}
	if want[0].Descends() || !want[1].Descends() {
		t.Error("what lost does not descend from itself, what follows from it does")
	}

	// The same in other batches and after a restart, from the stored refusals.
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, dir, Options{})
	appended = mustAppend(t, l, recorded(5, mFarFromLost, mFromLost, mLost, mStands))
	if len(appended.Conflicts) != 3 || appended.Duplicates != 1 || len(appended.Messages) != 0 {
		t.Fatalf("appended %+v", appended)
	}
	parted, err := l.undropped(t.Context())
	if diff := cmp.Diff([]string{mStands.ID}, parted); err != nil || diff != "" {
		t.Fatalf("parted lineages: %v\n%s", err, diff)
	}

	// The descendant of the standing payload has the ID of the refused one, and enters. The
	// refused one is then a conflict with it.
	appended = mustAppend(t, l, recorded(9, mFromStands, mFromLost, mFarFromLost))
	want = []Conflict{
		{Message: mFromLost, Standing: mFromStands.ID},
		{Message: mFarFromLost, Standing: mStands.ID},
	}
	if diff := cmp.Diff(want, appended.Conflicts); diff != "" || appended.Last != 3 {
		t.Fatalf("last %d; conflicts (-want +got):\n%s", appended.Last, diff)
	}
	if top := l.Book().Top("p1", 8); len(top) != 1 || top[0].Call != "f(1)" {
		t.Errorf("book has %v", top)
	}
	if report := mustVerify(t, l); report.Refused != 2 || report.Events != 3 {
		t.Errorf("report %+v", report)
	}

	drop := events.Caused(stands, "recorder", replaytest.Time, &events.GroupDropped{Stage: "recorder", Reason: events.DropLineage})
	mustAppend(t, l, at(12, replaytest.Encode(t, drop)))
	if parted, err := l.undropped(t.Context()); err != nil || len(parted) != 0 {
		t.Errorf("dropped, and still parted: %v, %v", parted, err)
	}
}

// An event with an unknown cause is quarantined. A record of another log is
// appended, because that log has it.
func TestUnknownCause(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{})
	orphans := replaytest.Group(t, 1)[1:]
	if appended := mustAppend(t, l, at(0, orphans...)); appended.Last != 0 || len(appended.Quarantined) != 2 {
		t.Errorf("appended %+v", appended)
	}
	if appended := mustAppend(t, l, recorded(2, orphans...)); appended.Last != 2 || appended.Conflicts != nil {
		t.Errorf("appended %+v", appended)
	}
}
