package command

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codea1/events"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

// The log knows the events on which stages gave up, and no group that was dropped for another
// reason.
func TestDeadLettersOfALog(t *testing.T) {
	t.Parallel()
	s := replaytest.NewStory(t)
	s.Start()
	posed := s.Add(replaytest.Posed(0, "q"))
	s.Then(posed, &events.GroupDropped{Purpose: events.PurposeTrain, Step: 1, Stage: "rollout-code", Reason: events.DropRetries, Detail: "failed 5 times, last: no entry"})
	s.Then(s.Add(replaytest.Posed(1, "q")), &events.GroupDropped{Purpose: events.PurposeTrain, Step: 1, Slot: 1, Stage: "trainer-code", Reason: events.DropStale, Detail: "late"})
	run, l := eventlogtest.Run(t, s.Messages)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want := []events.DeadLetter{{Name: "rollout-code", EventID: posed.ID, Type: events.TypeProblemPosed, Group: posed.Group, Reason: "failed 5 times, last: no entry"}}
	for dir, name := range map[string]string{filepath.Dir(run): filepath.Base(run), "elsewhere": run} {
		got, err := DeadLetters(t.Context(), dir, name, slog.New(slog.DiscardHandler))
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(events.DeadLetter{}, "Time")); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}
