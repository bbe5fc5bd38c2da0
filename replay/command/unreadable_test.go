package command

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events"
	"codea1/replay/audit"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/fork"
	"codea1/replay/internal/replaytest"
	"codea1/replay/query"
)

// unreadable gives a message a payload that cannot be decoded, as another program may
// publish it.
func unreadable(m *events.Message) { m.Encoding, m.Data = events.EncodingNone, []byte{0xc1} }

// unreadableStory is a run with two groups that have an undecodable event, and one without.
func unreadableStory(t *testing.T) []events.Message {
	s := replaytest.NewStory(t)
	s.Start()
	dropped := func(group string, slot int) {
		s.Root(group, &events.GroupDropped{
			Purpose: events.PurposeTrain, Step: 1, Slot: slot, Stage: "rollout-test", Reason: events.DropMalformed, Detail: "not msgpack",
		})
	}
	first := len(s.Messages)
	question := s.Executed(s.Plan(events.PurposeTrain, 1, 0)).Group
	s.Messages = s.Messages[:first+1]
	unreadable(&s.Messages[first])
	dropped(question, 0)
	second := len(s.Messages)
	answers := s.Executed(s.Plan(events.PurposeTrain, 1, 1)).Group
	s.Messages = s.Messages[:second+2]
	unreadable(&s.Messages[second+1])
	dropped(answers, 1)
	s.Group(s.Plan(events.PurposeTrain, 2, 0))
	return s.Messages
}

// An event that cannot be decoded is shown as such, and all other events are shown.
func TestCommandsOnAnUnreadableEvent(t *testing.T) {
	t.Parallel()
	messages := unreadableStory(t)
	run, l := eventlogtest.Run(t, messages)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, want string }{
		{"replay scan RUN --code __eq__", "1 answers of 1 groups"},
		{"replay export RUN --table answers", `"group":"s000002-q0000"`},
		{"replay export RUN --table tests --format jsonl", `"group":"s000002-q0000"`},
		{"replay export RUN --table golden", "assert f("},
		{"replay explain RUN --group s000001-q0001", "dropped by rollout-test: malformed: not msgpack"},
		{"replay rebuild RUN RUN-2", "events        11,"},
		{"replay state RUN", "posed"},
		{"mistakes history RUN p0", "enters with"},
	} {
		out, err := execute(t, strings.Fields(strings.ReplaceAll(tt.args, "RUN", run))...)
		if err != nil || !strings.Contains(strings.ToLower(out), tt.want) {
			t.Errorf("%s: %v, want %q in\n%s", tt.args, err, tt.want, out)
		}
	}
	_, err := execute(t, "replay", "explain", run, "--group", "s000001-q0000")
	if !errors.Is(err, query.ErrUnreadable) || !strings.Contains(err.Error(), "event 2") {
		t.Errorf("explain a question that nobody can read: %v", err)
	}
	out, err := execute(t, "replay", "export", run)
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(rows) != len(messages) {
		t.Fatalf("%d rows of %d events, %v", len(rows), len(messages), err)
	}
	for i, row := range rows {
		var r struct{ Payload map[string]any }
		if err := json.Unmarshal([]byte(row), &r); err != nil {
			t.Fatal(err)
		}
		if broken := len(messages[i].Data) == 1; broken != (r.Payload == nil) {
			t.Errorf("row %d: %s", i, row)
		}
	}
	// Verify reports it.
	_, err = execute(t, "replay", "verify", run)
	var found *FindingsError
	if !errors.As(err, &found) || found.Found != 2 {
		t.Errorf("verify: %v", err)
	}
}

// Events of a group with different plans are an error that names the event.
func TestEventsOfAnotherPlan(t *testing.T) {
	t.Parallel()
	s := replaytest.NewStory(t)
	s.Start()
	e := s.Executed(s.Plan(events.PurposeTrain, 1, 0))
	other := *e.Payload.(*events.CodeExecuted)
	other.Plan.Answers = 1
	other.Answers = other.Answers[:1]
	e.Payload = &other
	s.Messages[len(s.Messages)-1] = replaytest.Encode(t, e)
	run, l := eventlogtest.Run(t, s.Messages)
	got, err := audit.Check(t.Context(), l, replaytest.Recipes{}, nil)
	if err != nil || got.Found != 1 || !strings.Contains(got.Findings[0].Reason, query.ErrPlan.Error()) {
		t.Errorf("history: %+v, %v", got, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"explain RUN --group " + e.Group, "scan RUN --error x", "export RUN --table answers", "export RUN --table tests"} {
		_, err := execute(t, strings.Fields("replay "+strings.ReplaceAll(args, "RUN", run))...)
		if !errors.Is(err, query.ErrPlan) || !strings.Contains(err.Error(), "event 5") {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// The exported payload of a fork names its origin with the fields of the event.
func TestExportOfAnOrigin(t *testing.T) {
	t.Parallel()
	_, l := eventlogtest.Run(t, replaytest.Tell(t))
	dir := filepath.Join(t.TempDir(), "log")
	if _, err := fork.Copy(t.Context(), l, dir, fork.Config{At: 3, Run: "r2", Time: replaytest.Time, Options: eventlogtest.Scratch}, nil); err != nil {
		t.Fatal(err)
	}
	out, err := execute(t, "replay", "export", dir, "--type", "run.started")
	if err != nil || !strings.Contains(out, `"origin":{"chain":"`) || !strings.Contains(out, `"events":3,"run":"r1"}`) {
		t.Errorf("%v\n%s", err, out)
	}
}
