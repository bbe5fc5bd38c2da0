package events_test

import (
	"fmt"
	"strings"
	"testing"

	"codea1/events"
	"codea1/events/eventstest"
)

// TestNames makes well-formed events under names, and with contents, that no stage of
// a run gives them. They are no events for any reader.
func TestNames(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	version := func(uri string, change func(*events.PolicyUpdated)) events.Payload {
		p := &events.PolicyUpdated{Role: events.RoleCode, Version: 7, Step: 7, Checkpoint: events.Checkpoint{URI: uri, SHA256: sum}}
		change(p)
		return p
	}
	posed := func(purpose events.Purpose, step, code, test int) events.Payload {
		p := *eventstest.Posed("r", step, 3).Payload.(*events.ProblemPosed)
		p.Plan.Purpose, p.Plan.CodeVersion, p.Plan.TestVersion = purpose, code, test
		if purpose == events.PurposeEval {
			p.Plan.Tag = "after"
		}
		return &p
	}
	drop := func(purpose events.Purpose, step, slot int) events.Payload {
		return &events.GroupDropped{Purpose: purpose, Step: step, Slot: slot, Groups: 9, Stage: "x", Reason: events.DropRetries}
	}
	start := events.Checkpoint{URI: "file:///start", SHA256: sum}
	const good = "file:///runs/r/checkpoints/code/v000007"
	same := func(*events.PolicyUpdated) {}
	for _, tt := range []struct {
		group   string
		payload events.Payload
		want    string // in the error; empty for none
	}{
		{"code-v000007", version(good, same), ""},
		{"code-v000007", version("file://localhost/mnt/r/checkpoints/code/v000007", same), ""},
		{"code-v000006", version(good, same), "group: the payload is that of code-v000007"},
		{"test-v000007", version(good, same), "group"},
		{"code-v7", version(good, same), "group"},
		{"x", version(good, same), "group"},
		{"code-v000007", version(good, func(p *events.PolicyUpdated) { p.Step = 8 }), "step"},
		{"code-v000007", version(good, func(p *events.PolicyUpdated) { p.Version = 1 << 40 }), "checkpoint.uri"},
		{"test-v000007", version(good, func(p *events.PolicyUpdated) { p.Role = events.RoleTest }), "checkpoint.uri"},
		{"start-0002", &events.RunStarted{Attempt: 2, Code: start, Test: start}, ""},
		{"start-0001", &events.RunStarted{Attempt: 2, Code: start, Test: start}, "group"},
		{"end-0002", &events.RunFinished{Attempt: 2, Reason: events.RunStopped}, ""},
		{"end-2", &events.RunFinished{Attempt: 2, Reason: events.RunStopped}, "group"},
		{"s000005-q0003", posed(events.PurposeTrain, 5, 4, 4), ""},
		{"s000005-q0003", posed(events.PurposeTrain, 5, 5, 4), "plan"},
		{"s000005-q0003", posed(events.PurposeTrain, 5, 0, 1<<30), "plan"},
		{"s000005-q0004", posed(events.PurposeTrain, 5, 4, 4), "group"},
		{"e-after-0003", posed(events.PurposeEval, 5, 5, 5), ""},
		{"e-after-0003", posed(events.PurposeEval, 5, 6, 5), "plan"},
		{"e-before-0003", posed(events.PurposeEval, 5, 5, 5), "group"},
		{"s000005-q0003", drop(events.PurposeTrain, 5, 3), ""},
		{"s000005-q0003", drop(events.PurposeTrain, 5, 4), "group"},
		{"x", drop(events.PurposeTrain, 5, 3), "group"},
		{"e-after-0003", drop(events.PurposeEval, 5, 3), ""},
	} {
		m := eventstest.Encode(events.New("r", tt.group, "x", eventstest.At, tt.payload))
		_, err := m.Admit()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v, want %q", m.Type, tt.group, err, tt.want)
		}
	}
	for _, uri := range []string{
		"/checkpoints/code/v000007", "s3://bucket/checkpoints/code/v000007", "http://localhost/checkpoints/code/v000007",
		"file://other-host/checkpoints/code/v000007", "file:checkpoints/code/v000007", "file:///a/../checkpoints/code/v000007",
		good + "?x=1", good + "#b", good + "/", good + "%00", good + "%zz", "file://user@localhost/checkpoints/code/v000007",
		"file:///checkpoints/code/%2e%2e/code/v000007", "file:///x%2F..%2Fcheckpoints%2Fcode%2Fv000007",
		"file:///checkpoints/test/v000007", "file:///checkpoints/code/v000008", "file:///v000007", "file:///",
	} {
		m := eventstest.Encode(events.New("r", "code-v000007", "x", eventstest.At, version(uri, same)))
		if _, err := m.Admit(); err == nil || !strings.Contains(err.Error(), "checkpoint.uri") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func FuzzCheckpointDir(f *testing.F) {
	for _, uri := range []string{"file:///a/v000001", "file://localhost/a%20b", "file:///a/../b", "s3://b/k", "file://%", ""} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		c := events.Checkpoint{URI: uri}
		if dir, err := c.Dir(); err == nil && (!strings.HasPrefix(dir, "/") || strings.Contains(fmt.Sprint(dir, "/"), "/../")) {
			t.Fatalf("%q names %q", uri, dir)
		}
	})
}
