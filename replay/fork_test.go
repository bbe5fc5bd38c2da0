package replay

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"codea1/events"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustFork(t testing.TB, source *Log, at uint64, run string) (*Log, Forked) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), run, "log")
	forked, err := Fork(t.Context(), source, dir, ForkConfig{At: at, Run: run, Time: testTime}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return openLog(t, dir, Options{}), forked
}

// Forked anywhere, a run is one of its own: every check that holds for a run
// holds for its fork, and for the fork of that.
func TestForkIsAValidRun(t *testing.T) {
	t.Parallel()
	_, source := storyLog(t, tell(t))
	last, _ := source.Last()
	for at := uint64(1); at <= last; at++ {
		log, forked := mustFork(t, source, at, "r2")
		report := mustVerify(t, log)
		if report.Events != at+1 || forked.Events != at+1 || forked.Attempt != 2 {
			t.Fatalf("at %d: %+v, %+v", at, report, forked)
		}
		history, err := log.CheckHistory(t.Context(), testRecipes{}, nil)
		if err != nil || history.Found > 0 {
			t.Fatalf("at %d: %v, %v", at, err, history.Findings)
		}
		book, err := source.BookAt(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(book.Encode(), log.Book().Encode()) {
			t.Errorf("at %d: the Mistake Book is another", at)
		}
		origins, err := log.CheckOrigins(t.Context())
		if err != nil || len(origins) != 1 || origins[0] != forked.Origin || origins[0].Run != testRun || origins[0].Events != at {
			t.Errorf("at %d: %+v, %v", at, origins, err)
		}
		if at%8 != 0 {
			continue
		}
		again, second := mustFork(t, log, at+1, "r3")
		origins, err = again.CheckOrigins(t.Context())
		if err != nil || !cmp.Equal(origins, []events.Origin{forked.Origin, second.Origin}) {
			t.Errorf("fork of a fork at %d: %+v, %v", at, origins, err)
		}
	}
}

// What the origin says of a group the fork says too, on both sides of the fork.
func TestForkKeepsLineage(t *testing.T) {
	t.Parallel()
	_, source := storyLog(t, tell(t))
	last, _ := source.Last()
	log, _ := mustFork(t, source, last, "r2")
	group := "s000001-q0001"
	want, err := source.Lineage(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	got, err := log.Lineage(t.Context(), group)
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

// A renamed message is what the stages of the other run would have made, and
// renamed back it is the message.
func TestRenaming(t *testing.T) {
	there, back := renaming{testRun, "r2"}, renaming{"r2", testRun}
	p := posed(1, "What is f?")
	p.TraceParent = events.New(testRun, p.Group, "x", testTime, p.Payload).TraceParent
	encode(t, p)
	s := sampled(p, "return x")
	m := encode(t, s)
	q := events.New("r2", p.Group, p.Source, p.Time, p.Payload)
	encode(t, q)
	want := encode(t, sampled(q, "return x"))
	if diff := cmp.Diff(want, there.apply(m)); diff != "" {
		t.Error(diff)
	}
	messages := tell(t)
	dropped := encode(t, events.Caused(s, "execution-0", testTime, &events.GroupDropped{Stage: "execution", Reason: events.DropRetries}))
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
			m.CausationID, m.CausationHash = fmt.Sprintf("%032x", rapid.Uint64().Draw(t, "cause")), Hash{}.String()
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
	_, source := storyLog(t, tell(t))
	last, _ := source.Last()
	dir := filepath.Join(t.TempDir(), "r2", "log")
	fork := func(l *Log, config ForkConfig) error {
		_, err := Fork(t.Context(), l, dir, config, nil)
		return err
	}
	if err := fork(source, ForkConfig{At: last + 1, Run: "r2", Time: testTime}); !errors.Is(err, ErrNotFound) {
		t.Errorf("past the end: %v", err)
	}
	if err := fork(source, ForkConfig{At: 1, Run: testRun, Time: testTime}); err == nil {
		t.Error("a fork has taken the name of its origin")
	}
	if err := fork(source, ForkConfig{At: 1, Run: "no name", Time: testTime}); err == nil {
		t.Error("a fork has taken a name that is none")
	}
	unstarted := openLog(t, filepath.Join(t.TempDir(), "log"), Options{})
	mustAppend(t, unstarted, at(1, group(t, 0)...))
	if err := fork(unstarted, ForkConfig{At: 1, Run: "r2", Time: testTime}); !errors.Is(err, ErrNotStarted) {
		t.Errorf("before the start: %v", err)
	}
	if left, _ := filepath.Glob(dir + "*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A beginning that is not the origin's is found, however valid it is by itself.
func TestCheckOriginsFindsAnotherBeginning(t *testing.T) {
	t.Parallel()
	_, source := storyLog(t, tell(t))
	forkLog, forked := mustFork(t, source, 5, "r2")
	for name, origin := range map[string]events.Origin{
		"of another run": {Run: "r9", Events: 5, Chain: forked.Origin.Chain},
		"of another end": {Run: testRun, Events: 4, Chain: forked.Origin.Chain},
		"changed":        {Run: testRun, Events: 5, Chain: Hash{1}.String()},
	} {
		messages := scanAll(t, forkLog, ScanOptions{To: 5})
		start := events.RunStarted{Attempt: 2, Code: checkpoint("code", 0), Test: checkpoint("test", 0), Origin: &origin}
		messages = append(messages, encode(t, events.New("r2", "start-0002", "fork", testTime, &start)))
		other := openLog(t, filepath.Join(t.TempDir(), "log"), Options{})
		mustAppend(t, other, at(1, messages...))
		var wrong *OriginError
		if _, err := other.CheckOrigins(t.Context()); !errors.As(err, &wrong) || wrong.Seq != 6 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
