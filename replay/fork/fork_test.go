package fork

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codea1/events"
	"codea1/replay/audit"
	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
	"codea1/replay/query"
)

func mustFork(t testing.TB, source *eventlog.Log, at uint64, run string) (*eventlog.Log, Forked) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), run, "log")
	forked, err := Copy(t.Context(), source, dir, Config{At: at, Run: run, Time: replaytest.Time}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return eventlogtest.Open(t, dir, eventlog.Options{}), forked
}

// A fork after any event is a valid run, and so is the fork of a fork. The default run
// forks after every fourth event.
func TestForkIsAValidRun(t *testing.T) {
	t.Parallel()
	_, source := eventlogtest.Run(t, replaytest.Tell(t))
	last, _ := source.Last()
	thorough := os.Getenv("CODEA1_TEST_THOROUGH") == "1"
	for at := uint64(1); at <= last; at++ {
		if !thorough && at != 1 && at%4 != 0 && at != last {
			continue
		}
		log, forked := mustFork(t, source, at, "r2")
		report := eventlogtest.Verify(t, log)
		if report.Events != at+1 || forked.Events != at+1 || forked.Attempts != 2 {
			t.Fatalf("at %d: %+v, %+v", at, report, forked)
		}
		history, err := audit.Check(t.Context(), log, replaytest.Recipes{}, nil)
		if err != nil || history.Found > 0 {
			t.Fatalf("at %d: %v, %v", at, err, history.Findings)
		}
		book, err := source.BookAt(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(book.Encode(), log.Book().Encode()) {
			t.Errorf("at %d: the Mistake Book differs", at)
		}
		origins, err := CheckOrigins(t.Context(), log)
		if err != nil || len(origins) != 1 || origins[0] != forked.Origin || origins[0].Run != replaytest.Run || origins[0].Events != at {
			t.Errorf("at %d: %+v, %v", at, origins, err)
		}
		if at%8 != 0 {
			continue
		}
		again, second := mustFork(t, log, at+1, "r3")
		origins, err = CheckOrigins(t.Context(), again)
		if err != nil || !cmp.Equal(origins, []events.Origin{forked.Origin, second.Origin}) {
			t.Errorf("fork of a fork at %d: %+v, %v", at, origins, err)
		}
	}
}

// A fork has the same lineage of a group as its origin.
func TestForkKeepsLineage(t *testing.T) {
	t.Parallel()
	_, source := eventlogtest.Run(t, replaytest.Tell(t))
	last, _ := source.Last()
	log, _ := mustFork(t, source, last, "r2")
	group := "s000001-q0001"
	want, err := query.Explain(t.Context(), source, group)
	if err != nil {
		t.Fatal(err)
	}
	got, err := query.Explain(t.Context(), log, group)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Events {
		w, g := &want.Events[i], &got.Events[i]
		if g.Message.Run != "r2" || g.Message.ID == w.Message.ID || g.PayloadHash != w.PayloadHash || g.Seq != w.Seq || !g.Message.Time.Equal(w.Message.Time) {
			t.Errorf("event %d: %+v became %+v", w.Seq, w.Message.Envelope, g.Message.Envelope)
		}
	}
	want.Events, got.Events = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A renamed message equals the message that the stages of the other run make. The
// reverse renaming restores it.
func TestRenaming(t *testing.T) {
	there, back := renaming{replaytest.Run, "r2"}, renaming{"r2", replaytest.Run}
	p := replaytest.Posed(1, "What is f?")
	p.TraceParent = events.New(replaytest.Run, p.Group, "x", replaytest.Time, p.Payload).TraceParent
	replaytest.Encode(t, p)
	s := replaytest.Sampled(p, "return x")
	m := replaytest.Encode(t, s)
	q := events.New("r2", p.Group, p.Source, p.Time, p.Payload)
	replaytest.Encode(t, q)
	want := replaytest.Encode(t, replaytest.Sampled(q, "return x"))
	if diff := cmp.Diff(want, there.apply(m)); diff != "" {
		t.Error(diff)
	}
	messages := replaytest.Tell(t)
	dropped := replaytest.Encode(t, events.Caused(s, "execution-0", replaytest.Time, &events.GroupDropped{Stage: "execution", Reason: events.DropRetries}))
	if renamed := there.apply(dropped); renamed.ID != events.DeriveID(want.ID, events.TypeGroupDropped) || renamed.CausationID != want.ID {
		t.Errorf("a drop follows from %s, not %s", renamed.CausationID, want.ID)
	}
	messages = append(messages, dropped)
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(messages).Draw(t, "message")
		switch rapid.IntRange(0, 3).Draw(t, "odd") {
		case 1:
			m.ID = fmt.Sprintf("%032x", rapid.Uint64().Draw(t, "id"))
		case 2:
			m.CausationID, m.CausationHash = fmt.Sprintf("%032x", rapid.Uint64().Draw(t, "cause")), eventlog.Hash{}.String()
		case 3:
			m.TraceParent = rapid.StringMatching(`[a-f0-9-]{0,60}`).Draw(t, "trace")
		}
		if diff := cmp.Diff(m, back.apply(there.apply(m))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestForkRefuses(t *testing.T) {
	t.Parallel()
	_, source := eventlogtest.Run(t, replaytest.Tell(t))
	last, _ := source.Last()
	dir := filepath.Join(t.TempDir(), "r2", "log")
	fork := func(l *eventlog.Log, config Config) error {
		_, err := Copy(t.Context(), l, dir, config, nil)
		return err
	}
	if err := fork(source, Config{At: last + 1, Run: "r2", Time: replaytest.Time}); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("past the end: %v", err)
	}
	if err := fork(source, Config{At: 1, Run: replaytest.Run, Time: replaytest.Time}); err == nil {
		t.Error("a fork with the name of its origin")
	}
	if err := fork(source, Config{At: 1, Run: "no name", Time: replaytest.Time}); err == nil {
		t.Error("a fork with an invalid name")
	}
	unstarted := eventlogtest.Open(t, filepath.Join(t.TempDir(), "log"), eventlog.Options{})
	eventlogtest.Append(t, unstarted, eventlogtest.At(1, replaytest.Group(t, 0)...))
	if err := fork(unstarted, Config{At: 1, Run: "r2", Time: replaytest.Time}); !errors.Is(err, ErrNotStarted) {
		t.Errorf("before the start: %v", err)
	}
	if left, _ := filepath.Glob(dir + "*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// CheckOrigins finds shared events that differ from those of the origin.
func TestCheckOriginsFindsAnotherBeginning(t *testing.T) {
	t.Parallel()
	_, source := eventlogtest.Run(t, replaytest.Tell(t))
	forkLog, forked := mustFork(t, source, 5, "r2")
	for name, origin := range map[string]events.Origin{
		"of another run": {Run: "r9", Events: 5, Chain: forked.Origin.Chain},
		"of another end": {Run: replaytest.Run, Events: 4, Chain: forked.Origin.Chain},
		"changed":        {Run: replaytest.Run, Events: 5, Chain: eventlog.Hash{1}.String()},
	} {
		messages := eventlogtest.Messages(t, forkLog, eventlog.ReadOptions{To: 5})
		start := events.RunStarted{Attempt: 2, Code: replaytest.Checkpoint("code", 0), Test: replaytest.Checkpoint("test", 0), Origin: &origin}
		messages = append(messages, replaytest.Encode(t, events.New("r2", "start-0002", "fork", replaytest.Time, &start)))
		other := eventlogtest.Open(t, filepath.Join(t.TempDir(), "log"), eventlog.Options{})
		eventlogtest.Append(t, other, eventlogtest.At(1, messages...))
		var wrong *OriginError
		if _, err := CheckOrigins(t.Context(), other); !errors.As(err, &wrong) || wrong.Seq != 6 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
