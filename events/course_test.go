package events_test

import (
	"strings"
	"testing"

	"codea1/events"
)

// TestCourse follows a run and tries events out of turn at every place.
func TestCourse(t *testing.T) {
	start := func(attempt int, digit string) *events.RunStarted {
		c := events.Checkpoint{URI: "file:///c", SHA256: strings.Repeat(digit, 64)}
		return &events.RunStarted{Attempt: attempt, Steps: 1, Code: c, Test: c}
	}
	end := func(attempt int) *events.RunFinished {
		return &events.RunFinished{Attempt: attempt, Reason: events.RunStopped}
	}
	update := func(role events.Role, version int) *events.PolicyUpdated {
		return &events.PolicyUpdated{Role: role, Version: version}
	}
	c := events.NewCourse()
	for _, tt := range []struct {
		next events.Payload
		not  []events.Payload // before it
	}{
		{start(1, "a"), []events.Payload{start(0, "a"), start(2, "a"), end(0 + 1), update(events.RoleCode, 2)}},
		{update(events.RoleCode, 1), []events.Payload{update(events.RoleCode, 2), update(events.RoleTest, 0), start(1, "a"), end(2)}},
		{update(events.RoleCode, 2), []events.Payload{update(events.RoleCode, 1), update(events.RoleCode, 3)}},
		{end(1), []events.Payload{
			end(0), end(2),
			&events.RunFinished{Attempt: 1, Steps: 1, Reason: events.RunStopped}, // the Test LLM has trained none
			&events.RunFinished{Attempt: 1, Reason: events.RunCompleted},
		}},
		{start(2, "a"), []events.Payload{end(1), start(1, "a"), start(3, "a"), start(2, "b")}},
		{update(events.RoleTest, 1), []events.Payload{update(events.RoleTest, 2)}},
		{start(3, "a"), []events.Payload{end(1), end(3), start(2, "a"), start(3, "b")}}, // attempt 2 was killed
		{&events.RunFinished{Attempt: 3, Steps: 1, Reason: events.RunCompleted}, []events.Payload{
			&events.RunFinished{Attempt: 3, Steps: 2, Reason: events.RunCompleted},
		}},
	} {
		before := c.Clone()
		for _, p := range tt.not {
			if c.Check(p) == nil {
				t.Errorf("%+v is taken before %+v", p, tt.next)
			}
		}
		if err := c.Check(tt.next); err != nil {
			t.Error(err)
		}
		if c.Check(&events.StageHeartbeat{}) != nil {
			t.Error("an event of any other type is in turn")
		}
		c.Apply(tt.next)
		if err := before.Check(tt.next); err != nil {
			t.Errorf("a clone has changed: %v", err)
		}
	}
}
