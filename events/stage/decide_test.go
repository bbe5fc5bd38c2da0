package stage

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"

	"codea1/events"
	"codea1/events/eventstest"
)

// TestDecide runs the transcript testdata/decide; -rewrite rewrites it.
func TestDecide(t *testing.T) {
	r := rules{stage: "worker", source: "worker-0", maxTries: 3, backoff: Backoff{Initial: time.Second, Max: 5 * time.Second}}
	datadriven.RunTest(t, "testdata/decide", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "decide" {
			t.Fatalf("unknown command %q", d.Cmd)
		}
		kind, group := "event", ""
		in := input{now: eventstest.At}
		d.MaybeScanArgs(t, "input", &kind)
		d.MaybeScanArgs(t, "group", &group)
		d.MaybeScanArgs(t, "failures", &in.failures)
		r := r
		r.hold = d.HasArg("hold")
		in.message = eventstest.Encode(eventstest.Posed("r1", 2, 3))
		if group != "" {
			in.message.Group = group
		}
		switch kind {
		case "malformed":
			in.message.Encoding, in.message.Data = events.EncodingNone, []byte{0xc1}
		case "newer":
			in.message.SchemaVersion = 99
		}
		in.event, in.err = in.message.Decode()
		return describe(t, r.decide(in, script(t, in, d.Input)))
	})
}

// script makes the result that a line of the transcript describes.
func script(t *testing.T, in input, line string) Result {
	word, rest, _ := strings.Cut(line, " ")
	wrapped := strings.TrimPrefix(word, "wrapped-")
	var err error
	switch wrapped {
	case "ok":
		if rest == "1" {
			return Result{Events: []*events.Event{eventstest.CodeSampled(in.event)}}
		}
		return Result{}
	case "error":
		err = errors.New(rest)
	case "panic":
		err = &PanicError{Value: rest, Stack: []byte("goroutine 7 [running]:\nworker.handle()")}
	case "closed":
		err = fmt.Errorf("ask the bus: %w", events.ErrClosed)
	case "snooze":
		after, parseErr := time.ParseDuration(rest)
		if parseErr != nil {
			t.Fatal(parseErr)
		}
		err = Snooze(after)
	case "drop":
		reason, detail, _ := strings.Cut(rest, " ")
		err = Drop(events.DropReason(reason), detail)
	case "too-large":
		return Result{Events: []*events.Event{tooLarge(in.event)}}
	case "invalid":
		return Result{Events: []*events.Event{events.Caused(in.event, "worker-0", in.now, &events.GroupRewarded{})}}
	default:
		t.Fatalf("unknown result %q", line)
	}
	if wrapped != word {
		err = fmt.Errorf("answer 2: %w", err)
	}
	return Result{Err: err}
}

func tooLarge(cause *events.Event) *events.Event {
	p := *cause.Payload.(*events.ProblemPosed)
	p.Plan.Answers = 40
	c := &events.CodeSampled{Posed: p}
	for range p.Plan.Answers {
		c.Answers = append(c.Answers, events.Completion{Text: strings.Repeat("x", events.MaxTextBytes), Finish: events.FinishStop})
	}
	return events.Caused(cause, "worker-0", eventstest.At, c)
}

func describe(t *testing.T, d decision) string {
	var b strings.Builder
	for _, m := range d.publish {
		e, err := m.Decode()
		if err != nil {
			t.Fatal(err)
		}
		cause := "root"
		if e.CausationID != "" {
			cause = "caused"
		}
		fmt.Fprintf(&b, "publish %s %s (%s, by %s)\n", e.Type, e.Group, cause, e.Source)
		if g, ok := e.Payload.(*events.GroupDropped); ok {
			fmt.Fprintf(&b, "  %s: %s: %s\n", g.Stage, g.Reason, g.Detail)
			fmt.Fprintf(&b, "  purpose %q step %d slot %d of %d\n", g.Purpose, g.Step, g.Slot, g.Groups)
		}
	}
	b.WriteString(string(d.answer))
	if d.answer == answerRetry {
		fmt.Fprintf(&b, " after %v", d.after)
	}
	b.WriteString("\n")
	if d.letter != "" {
		fmt.Fprintf(&b, "letter: %s\n", d.letter)
	}
	if d.failure != nil {
		fmt.Fprintf(&b, "failure: %v\n", d.failure)
	}
	return b.String()
}

// The same input and result give the same events, so a redelivery publishes
// nothing new.
func TestDecisionsRepeat(t *testing.T) {
	r := rules{stage: "worker", source: "worker-0", maxTries: 1, backoff: defaultBackoff}
	m := eventstest.Encode(eventstest.Posed("r1", 2, 3))
	e, err := m.Decode()
	if err != nil {
		t.Fatal(err)
	}
	result := Result{Err: errors.New("no luck")}
	first := r.decide(input{message: m, event: e, now: eventstest.At}, result)
	again := r.decide(input{message: m, event: e, now: eventstest.At.Add(time.Hour)}, result)
	if first.publish[0].ID != again.publish[0].ID {
		t.Errorf("one input was dropped under two IDs, %s and %s", first.publish[0].ID, again.publish[0].ID)
	}
}

// A stage that the run does not wait for publishes no group.dropped, however it gives up.
func TestKeptGroups(t *testing.T) {
	m := eventstest.Encode(eventstest.Posed("r1", 2, 3))
	e, err := m.Decode()
	if err != nil {
		t.Fatal(err)
	}
	in := input{message: m, event: e, now: eventstest.At}
	for _, hold := range []bool{false, true} {
		r := rules{stage: "worker", source: "worker-0", maxTries: 1, backoff: defaultBackoff, keep: true, hold: hold}
		for name, d := range map[string]decision{
			"a failure": r.decide(in, Result{Err: errors.New("no luck")}), "a drop": r.decide(in, Result{Err: Drop(events.DropTooLarge, "8 MiB")}),
			"a lineage conflict": r.drop(in, events.DropLineage, "x"), "the end of the hold": r.released(in, &events.DeadLetter{Reason: "x"}),
		} {
			if len(d.publish) > 0 || d.reason != "" || d.answer != answerDeadLetter || d.letter == "" || d.failure == nil {
				t.Errorf("%s: %+v, want a dead letter and nothing else", name, d)
			}
		}
	}
}

func TestClip(t *testing.T) {
	long := clip(strings.Repeat("é", maxDetailBytes))
	if len(long) > maxDetailBytes+len("...") || !utf8.ValidString(long) {
		t.Errorf("clipped to %d bytes", len(long))
	}
	if odd := clip("x" + strings.Repeat("é", maxDetailBytes)); !utf8.ValidString(odd) {
		t.Errorf("clipped within a rune: %q", odd[maxDetailBytes-4:])
	}
	if got := clip("a\xffb"); got != "a?b" {
		t.Errorf("clip of invalid UTF-8: %q", got)
	}
}
