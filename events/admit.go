package events

import (
	"fmt"
	"time"
)

// causeOf maps each type that follows from another event to the type of its cause.
var causeOf = Causes()

// The time of an event is within these years. A time outside cannot come from a
// clock, and would spoil every figure that is computed from times.
const firstYear, lastYear = 1970, 2199

// Admit is Decode with the checks of Event.Check, without the hash: for readers
// that cause no events. A message that it refuses is no event: the recorder
// quarantines it, and every other reader ignores it. So all readers of a run read
// the same events, whoever publishes.
func (m *Message) Admit() (*Event, error) {
	p, err := m.Payload()
	if err != nil {
		return nil, err
	}
	e := &Event{Envelope: m.Envelope, Payload: p}
	e.SchemaVersion = registry[m.Type].version
	return e, e.Check()
}

// Check checks what a valid envelope and a valid payload must have in common: the
// ID derives from the cause, or from run, type and group; the type of the event
// allows a cause or the lack of one; the group is that of the payload's plan.
func (e *Event) Check() error {
	if y := e.Time.Year(); y < firstYear || y > lastYear {
		return invalid("time", "%s is not within the years %d to %d", e.Time.Format(time.RFC3339), firstYear, lastYear)
	}
	want, caused := causeOf[e.Type]
	id := DeriveID(e.CausationID, e.Type)
	switch {
	case e.CausationID == "" && caused:
		return invalid("causationid", "is empty, but %s follows from %s", e.Type, want)
	case e.CausationID == "":
		id = rootID(e.Run, e.Type, e.Group)
	case !caused && e.Type != TypeGroupDropped:
		return invalid("causationid", "%s follows from no event", e.Type)
	}
	if e.ID != id {
		return invalid("id", "%s does not derive from the cause, or from run, type and group", e.ID)
	}
	if plan, ok := PlanOf(e.Payload); ok && plan.GroupID() != e.Group {
		return fmt.Errorf("%s %s: %w", e.Type, e.Group, invalid("plan", "is that of group %s", clip(plan.GroupID())))
	}
	return nil
}
