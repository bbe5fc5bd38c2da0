package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/replay/internal/replaytest"
)

// withoutTokens returns compacted messages.
func withoutTokens(t *testing.T, messages []events.Message) []events.Message {
	t.Helper()
	var compacted []events.Message
	for _, m := range messages {
		if hasTokens(m.Type) {
			m = recordsOf(t, m)[2].Message
		}
		compacted = append(compacted, m)
	}
	return compacted
}

// decompressed returns the messages without compression, for comparison.
func decompressed(t *testing.T, messages []events.Message) []events.Message {
	t.Helper()
	var all []events.Message
	for _, m := range messages {
		raw, err := m.Raw()
		if err != nil {
			t.Fatal(err)
		}
		m.Encoding, m.Data = events.EncodingNone, raw
		all = append(all, m)
	}
	return all
}

// A compacted log differs from the log only by its tokens.
func TestCompact(t *testing.T) {
	t.Parallel()
	messages := replaytest.Tell(t)
	run, l := storyLog(t, messages)
	before := mustVerify(t, l)
	book := l.Book().Encode()
	check := func(l *Log, to uint64, compacted uint64) {
		t.Helper()
		after := mustVerify(t, l)
		want := before
		want.Compacted = compacted
		if diff := cmp.Diff(want, after); diff != "" {
			t.Errorf("verify (-want +got):\n%s", diff)
		}
		if !bytes.Equal(book, l.Book().Encode()) {
			t.Error("the book is another")
		}
		kept := append(withoutTokens(t, messages[:to]), messages[to:]...)
		if diff := cmp.Diff(decompressed(t, kept), decompressed(t, allMessages(t, l, ReadOptions{}))); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	for _, tt := range []struct{ to, done, compacted uint64 }{
		{18, 6, 6}, {18, 0, 6}, {3, 0, 6}, {uint64(len(messages)), 4, 10}, {1 << 40, 0, 10},
	} {
		report, err := l.Compact(t.Context(), tt.to, nil)
		if err != nil {
			t.Fatal(err)
		}
		if report.Events != tt.done || report.Waiting || report.Whole != 0 {
			t.Errorf("to %d: %+v", tt.to, report)
		}
		check(l, report.To, tt.compacted)
	}
	// The events are still duplicates.
	appended := mustAppend(t, l, at(0, messages...))
	if appended.Duplicates != len(messages) || appended.Last != 0 {
		t.Errorf("appended again: %+v", appended)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	check(openLog(t, Dir(run), Options{ReadOnly: true}), 31, 10)
	check(openLog(t, Dir(run), Options{}), 31, 10)
}

// A group that was sampled before the previous step was trained keeps its tokens
// until its own step is trained.
func TestSettled(t *testing.T) {
	t.Parallel()
	s := replaytest.NewStory(t)
	s.Start()
	var steps [3][]string
	for step := 1; step <= 2; step++ {
		for slot := range replaytest.Groups {
			steps[step] = append(steps[step], s.Group(s.Plan(events.PurposeTrain, step, slot)))
		}
	}
	s.Update(events.RoleCode, 1, steps[1])
	_, l := storyLog(t, s.Messages)
	check := func(want uint64) {
		t.Helper()
		if got, err := l.Settled(t.Context(), 1<<40); err != nil || got != want {
			t.Errorf("settled to event %d, want %d; %v", got, want, err)
		}
	}
	check(2) // the first group is posed
	first := len(s.Messages)
	s.Update(events.RoleTest, 1, steps[1])
	mustAppend(t, l, at(first, s.Messages[first:]...))
	check(12) // so is the third
	if _, err := l.Compact(t.Context(), 12, nil); err != nil {
		t.Fatal(err)
	}
	check(12)
	first = len(s.Messages)
	s.Update(events.RoleCode, 2, steps[2])
	s.Update(events.RoleTest, 2, steps[2])
	mustAppend(t, l, at(first, s.Messages[first:]...))
	check(1 << 40)
}

// tokenEvents returns groups with many tokens, which do not compress.
func tokenEvents(t *testing.T, groups, tokens int) []events.Message {
	r := rand.New(rand.NewPCG(1, 2))
	var messages []events.Message
	for slot := range groups {
		p := replaytest.Posed(slot, "What is f?")
		messages = append(messages, replaytest.Encode(t, p))
		s := replaytest.Sampled(p, "return x")
		c := &s.Payload.(*events.CodeSampled).Answers[0]
		c.Tokens, c.LogProbs = make(events.Int32s, tokens), make(events.Float32s, tokens)
		for i := range tokens {
			c.Tokens[i], c.LogProbs[i] = int32(r.Uint32()>>1), r.Float32()
		}
		messages = append(messages, replaytest.Encode(t, s))
	}
	return messages
}

// Compaction frees disk space, but not while a reader has the files.
func TestCompactFreesTheDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, Dir(dir), Options{})
	for i, m := range tokenEvents(t, 40, 40_000) {
		mustAppend(t, l, at(i, m))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	before := DiskUsage(l.dir)
	reader := openLog(t, Dir(dir), Options{ReadOnly: true})
	l = openLog(t, Dir(dir), Options{})
	report, err := l.Compact(t.Context(), 80, nil)
	if err != nil || !report.Waiting || report.Events != 40 {
		t.Fatalf("under a reader: %+v, %v", report, err)
	}
	if diff := cmp.Diff(uint64(0), mustVerify(t, reader).Compacted); diff != "" {
		t.Error("the reader sees what came after it")
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if report, err = l.Compact(t.Context(), 80, nil); err != nil || report.Waiting || report.Events != 0 {
		t.Fatalf("alone: %+v, %v", report, err)
	}
	mustVerify(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	after := DiskUsage(l.dir)
	t.Logf("%.1f MB, then %.1f MB", float64(before)/1e6, float64(after)/1e6)
	if before < 12e6 || after > before/10 {
		t.Errorf("%d bytes on disk, %d before", after, before)
	}
	l = openLog(t, Dir(dir), Options{})
	if report := mustVerify(t, l); report.Compacted != 40 || report.Events != 80 {
		t.Errorf("%+v", report)
	}
}

// An interrupted compaction leaves complete segments, and the next one continues.
func TestCompactContinues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	mustAppend(t, l, at(0, tokenEvents(t, 2*segmentEvents+10, 10)...))
	ctx, cancel := context.WithCancel(t.Context())
	report, err := l.Compact(ctx, 1<<40, func(uint64) { cancel() })
	if !errors.Is(err, context.Canceled) || report.Events != segmentEvents {
		t.Fatalf("interrupted: %+v, %v", report, err)
	}
	if got := mustVerify(t, l).Compacted; got != segmentEvents {
		t.Fatalf("%d payloads are compacted", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, dir, Options{})
	if report, err = l.Compact(t.Context(), 1<<40, nil); err != nil || report.Events != segmentEvents+10 {
		t.Fatalf("again: %+v, %v", report, err)
	}
	if got := mustVerify(t, l).Compacted; got != 2*segmentEvents+10 {
		t.Fatalf("%d payloads are compacted", got)
	}
}

// Appending, reading and compacting run at the same time.
func TestCompactWhileAppending(t *testing.T) {
	t.Parallel()
	l := openLog(t, filepath.Join(scratchDir(t), "log"), scratch)
	const groups, batch = 120, 4
	ids := make(chan string, groups)
	work, ctx := errgroup.WithContext(t.Context())
	work.Go(func() error {
		defer close(ids)
		for slot := 0; slot < groups; slot += batch {
			var messages []events.Message
			for i := range batch {
				messages = append(messages, replaytest.Group(t, slot+i)...)
			}
			if _, err := l.Append(ctx, at(3*slot, messages...)); err != nil {
				return err
			}
			ids <- messages[1].ID
		}
		return nil
	})
	work.Go(func() error {
		for id := range ids {
			last, _ := l.Last()
			if _, err := l.Compact(ctx, last, nil); err != nil {
				return err
			}
			if r, err := l.Get(ctx, id); err != nil || !r.Compacted {
				return fmt.Errorf("event %s: compacted %t, %w", id, r.Compacted, err)
			}
		}
		return nil
	})
	work.Go(func() error {
		for range 20 {
			if _, err := l.Verify(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	if report := mustVerify(t, l); report.Events != 3*groups || report.Compacted != groups {
		t.Errorf("%+v", report)
	}
}

func TestCompactRefuses(t *testing.T) {
	t.Parallel()
	run, l := storyLog(t, replaytest.Tell(t))
	var inUse *InUseError
	if _, err := Open(Dir(run), Options{}); !errors.As(err, &inUse) {
		t.Errorf("a log that is written: %v", err)
	}
	if _, err := openLog(t, Dir(run), Options{ReadOnly: true}).Compact(t.Context(), 31, nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a log open for reading: %v", err)
	}
	// A damaged payload is not replaced by a compacted one.
	value := valueOf(t, l, 8)
	value[len(value)-1] ^= 1
	if err := l.setEvent(8, typeCodes[events.TypeCodeSampled], value); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := l.Compact(t.Context(), 31, nil); !errors.As(err, &corrupt) || corrupt.Seq != 8 {
		t.Errorf("a damaged payload: %v", err)
	}
	if !bytes.Equal(value, valueOf(t, l, 8)) {
		t.Error("the damaged record was replaced")
	}
}

// A compacted payload is checked like any other.
func TestVerifyFindsDamageInCompacted(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(value []byte) []byte{
		"a flipped byte of a text": func(value []byte) []byte {
			return bytes.Replace(value, []byte("def f"), []byte("def g"), 1)
		},
		"another number of tokens": func(value []byte) []byte {
			return bytes.Replace(value, []byte{1, 2, 2, 2, 0}, []byte{1, 2, 2, 3, 0}, 1)
		},
	} {
		_, l := storyLog(t, replaytest.Tell(t))
		if _, err := l.Compact(t.Context(), 31, nil); err != nil {
			t.Fatal(err)
		}
		value := valueOf(t, l, 8)
		changed := damage(bytes.Clone(value))
		if bytes.Equal(value, changed) {
			t.Fatalf("%s: nothing is changed", name)
		}
		if err := l.setEvent(8, typeCodes[events.TypeCodeSampled], changed); err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		if _, err := l.Verify(t.Context(), nil); !errors.As(err, &corrupt) || corrupt.Seq != 8 {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, l := storyLog(t, replaytest.Tell(t))
	wrong := compacted{to: 31, events: 3}
	if err := l.setKey(keyTokens, wrong.encode()); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := l.Verify(t.Context(), nil); !errors.As(err, &corrupt) {
		t.Errorf("another number of compacted payloads: %v", err)
	}
}
