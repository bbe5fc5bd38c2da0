package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/replay/internal/replaytest"
)

// kept returns the quarantined messages of a log.
func kept(t *testing.T, l *Log) []Quarantined {
	t.Helper()
	var all []Quarantined
	for q, err := range l.Quarantined(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

// TestQuarantine appends messages that are no events between the events of a run,
// in one batch and one by one. The log has the events, and both logs keep the
// same messages with their reasons.
func TestQuarantine(t *testing.T) {
	story := replaytest.Tell(t)
	group := replaytest.Group(t, 5) // its events are not in the story
	change := func(m events.Message, change func(m *events.Message)) events.Message {
		change(&m)
		return m
	}
	bad := []struct {
		m    events.Message
		want string
	}{
		{change(story[1], func(m *events.Message) { m.Data = m.Data[:len(m.Data)-3] }), "malformed payload"},
		{change(story[2], func(m *events.Message) { m.Encoding, m.Data = "", []byte{0xc1} }), "not a map"},
		{change(story[0], func(m *events.Message) { m.SchemaVersion = 999 }), "newer than this build"},
		{change(story[0], func(m *events.Message) { m.ID = "x" }), "want 32 hex digits"},
		{change(story[0], func(m *events.Message) { m.ID = strings.Repeat("ab", 16) }), "does not derive"},
		{change(story[1], func(m *events.Message) { m.Time = m.Time.AddDate(7000, 0, 0) }), "is not within the years"},
		{group[1], "is not in the log before it"},
		{change(group[1], func(m *events.Message) { m.CausationID = strings.Repeat("ab", 16) }), "no event from which"},
		{change(group[1], func(m *events.Message) { m.CausationID, m.CausationHash = "", "" }), "is empty, but code.sampled follows from"},
		{change(group[0], func(m *events.Message) { m.CausationID, m.CausationHash = group[1].ID, story[0].CausationHash }), "want both"},
	}
	for _, attempt := range []int{1, 7} {
		bad = append(bad, struct {
			m    events.Message
			want string
		}{replaytest.Encode(t, events.New(replaytest.Run, fmt.Sprintf("end-%04d", attempt+1), "x", replaytest.Time,
			&events.RunFinished{Attempt: attempt + 1, Reason: events.RunStopped})), "ends out of turn"})
	}
	early := *mustPayload[*events.PolicyUpdated](t, story, events.TypePolicyUpdated)
	early.Version += 7
	early.Step, early.Checkpoint = early.Version, replaytest.Checkpoint(string(early.Role), early.Version)
	bad = append(bad, struct {
		m    events.Message
		want string
	}{replaytest.Encode(t, events.New(replaytest.Run, fmt.Sprintf("%s-v%06d", early.Role, early.Version), "x", replaytest.Time, &early)), "is out of turn"})

	var batch []Incoming
	for i, m := range story {
		batch = append(batch, at(len(batch), m)...)
		batch = append(batch, at(len(batch), bad[i%len(bad)].m)...)
	}
	headers := &events.MalformedError{Place: "codea1.r1.x.y.z", Header: "ce-id: \x1b[2J\n", Data: []byte("hello"), Err: errors.New("no type")}
	batch = append(batch, Incoming{Malformed: headers, Position: "end"})

	whole, single := openLog(t, t.TempDir(), scratch), openLog(t, t.TempDir(), scratch)
	appended := mustAppend(t, whole, batch)
	for i := range batch {
		mustAppend(t, single, batch[i:i+1])
	}
	if len(appended.Messages) != len(story) || len(appended.Quarantined) != len(story)+1 || whole.Position() != "end" {
		t.Fatalf("%d events and %d quarantined messages, position %q", len(appended.Messages), len(appended.Quarantined), whole.Position())
	}
	got := kept(t, whole)
	if d := cmp.Diff(got, kept(t, single)); d != "" {
		t.Errorf("another quarantine from single messages:\n%s", d)
	}
	if d := cmp.Diff(got, appended.Quarantined); d != "" {
		t.Errorf("the log keeps others than it reports:\n%s", d)
	}
	for i, q := range got[:len(story)] {
		b := bad[i%len(bad)]
		if !strings.Contains(q.Reason, b.want) || q.Number != uint64(i+1) || q.After != uint64(i+1) || q.ID != b.m.ID ||
			q.Position != batch[2*i+1].Position || !bytes.Equal(q.Data, b.m.Data) {
			t.Errorf("quarantined %+v, want %q", q, b.want)
		}
	}
	if q := got[len(story)]; q.Place != headers.Place || q.Header != headers.Header || q.Reason != "no type" || string(q.Data) != "hello" {
		t.Errorf("malformed headers: %+v", q)
	}
	for _, l := range []*Log{whole, single} {
		report := mustVerify(t, l)
		if report.Events != uint64(len(story)) || report.Quarantine.Messages != uint64(len(got)) || report.Quarantine != l.Quarantine() {
			t.Errorf("report %+v, counts %+v", report, l.Quarantine())
		}
	}
	// The log continues its count after it was opened again.
	dir := whole.Dir()
	if err := whole.Close(); err != nil {
		t.Fatal(err)
	}
	whole = openLog(t, dir, scratch)
	again := mustAppend(t, whole, at(0, bad[0].m))
	if q := again.Quarantined; len(q) != 1 || q[0].Number != uint64(len(got)+1) || whole.Quarantine().Messages != uint64(len(got)+1) {
		t.Errorf("after it was opened again: %+v, %+v", q, whole.Quarantine())
	}
	mustVerify(t, whole)
}

// mustPayload returns the first payload of a type.
func mustPayload[P events.Payload](t *testing.T, messages []events.Message, of events.Type) P {
	t.Helper()
	for i := range messages {
		if messages[i].Type == of {
			p, err := messages[i].Payload()
			if err != nil {
				t.Fatal(err)
			}
			return p.(P)
		}
	}
	t.Fatalf("no %s", of)
	panic("unreachable")
}

// TestQuarantineIsBounded publishes more and larger garbage than the log keeps.
func TestQuarantineIsBounded(t *testing.T) {
	l := openLog(t, t.TempDir(), scratch)
	large := bytes.Repeat([]byte{0xc1}, maxQuarantinedData+1)
	var batch []Incoming
	published := 0
	for i := range 2*maxQuarantined + 7 {
		data := []byte{0xc1}
		if i%4 == 0 {
			data = large
		}
		published += len(data)
		batch = append(batch, Incoming{
			Malformed: &events.MalformedError{Place: fmt.Sprint(i), Data: data, Err: errors.New(strings.Repeat("x", 9<<10))},
			Position:  events.Position(fmt.Sprint(i)),
		})
	}
	for i := 0; i < len(batch); i += 100 {
		mustAppend(t, l, batch[i:min(i+100, len(batch))])
	}
	q := l.Quarantine()
	if q.Messages != uint64(len(batch)) || q.Kept > maxQuarantined || q.KeptSize > maxQuarantinedBytes || q.KeptSize < maxQuarantinedBytes/2 || q.Bytes != uint64(published) {
		t.Errorf("counts %+v", q)
	}
	for _, q := range kept(t, l) {
		if len(q.Data) > maxQuarantinedData || len(q.Reason) > maxReason || q.Bytes < len(q.Data) {
			t.Fatalf("message %d: %d of %d bytes are kept, reason of %d", q.Number, len(q.Data), q.Bytes, len(q.Reason))
		}
	}
	if at := l.Position(); at != batch[len(batch)-1].Position {
		t.Errorf("position %s", at)
	}
	mustVerify(t, l)
}

// FuzzAdmission appends any bytes as one message of a run. The
// log takes it as an event or quarantines it, and stays valid.
func FuzzAdmission(f *testing.F) {
	story := replaytest.Tell(f)
	for i := range story {
		m := &story[i]
		f.Add(uint8(i), string(m.Type), m.ID, m.Group, m.CausationID, m.SchemaVersion, m.Encoding, m.Data)
	}
	f.Add(uint8(1), "policy.updated", story[0].ID, "g", "", 999, "", []byte{0xc1})
	l := openLog(f, f.TempDir(), scratch)
	mustAppend(f, l, at(0, story...))
	known := make(map[string]bool)
	for i := range story {
		known[story[i].ID] = true
	}
	f.Fuzz(func(t *testing.T, from uint8, of, id, group, cause string, schema int, encoding string, data []byte) {
		m := story[int(from)%len(story)]
		m.Type, m.ID, m.Group, m.CausationID, m.SchemaVersion, m.Encoding, m.Data = events.Type(of), id, group, cause, schema, encoding, data
		before, _ := l.Last()
		counts := l.Quarantine()
		appended, err := l.Append(t.Context(), []Incoming{{Message: m, Position: "p"}})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(appended.Messages) + appended.Duplicates + len(appended.Conflicts) + len(appended.Quarantined); n != 1 {
			t.Fatalf("%d outcomes: %+v", n, appended)
		}
		if counts.Messages+uint64(len(appended.Quarantined)) != l.Quarantine().Messages {
			t.Fatalf("counts %+v", l.Quarantine())
		}
		if last, _ := l.Last(); last != before+uint64(len(appended.Messages)) {
			t.Fatalf("event %d after event %d", last, before)
		}
		for i := range appended.Messages {
			if _, err := appended.Messages[i].Admit(); err != nil || known[appended.Messages[i].ID] {
				t.Fatalf("the log has taken %+v: %v", appended.Messages[i], err)
			}
			known[appended.Messages[i].ID] = true
		}
	})
}
