package events

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// causesOf maps each type that follows from another event to the types of its
// causes.
var causesOf = Causes()

// The time of an event is within these years. A time outside cannot come from a
// clock, and would spoil every figure that is computed from times.
const firstYear, lastYear = 1970, 2199

// Admit is Decode with the checks of Event.Check, without the hash: for readers
// that cause no events. A message that it refuses is no event: the recorder
// quarantines it, and every other reader ignores it. So all readers of a run read
// the same events from every publisher.
func (m *Message) Admit() (*Event, error) {
	return m.AdmitRaw(func([]byte, func() string) error { return nil })
}

// AdmitRaw is Admit that calls use as WithRaw does.
func (m *Message) AdmitRaw(use func(raw []byte, hash func() string) error) (*Event, error) {
	p, err := m.decode(false, use)
	if err != nil {
		return nil, err
	}
	e := &Event{Envelope: m.Envelope, Payload: p}
	e.SchemaVersion = registry[m.Type].version
	return e, e.Check()
}

// Check checks that envelope and payload belong together: the
// ID derives from the cause, or from run, type and group; the type of the event
// allows a cause or the lack of one; the group is that of the payload.
func (e *Event) Check() error {
	if y := e.Time.Year(); y < firstYear || y > lastYear {
		return invalid("time", "%s is not within the years %d to %d", e.Time.Format(time.RFC3339), firstYear, lastYear)
	}
	want, caused := causesOf[e.Type]
	id := rootID(e.Run, e.Type, e.Group)
	switch {
	case e.CausationID != "" && !e.mayFollow():
		return invalid("causationid", "%s is no event from which %s of the group follows", e.CausationID, e.Type)
	case e.CausationID != "":
		id = DeriveID(e.CausationID, e.Type)
	case caused:
		return invalid("causationid", "is empty, but %s follows from %s", e.Type, want[0])
	}
	if e.ID != id {
		return invalid("id", "%s does not derive from the cause, or from run, type and group", e.ID)
	}
	if err := e.checkName(); err != nil {
		return fmt.Errorf("%s %s: %w", e.Type, e.Group, err)
	}
	return nil
}

// checkName checks that the payload is one that the event's group can have.
func (e *Event) checkName() error {
	plan, ok := PlanOf(e.Payload)
	name := plan.GroupID()
	switch p := e.Payload.(type) {
	case *GroupDropped:
		if p.Purpose != PurposeTrain {
			return nil // the payload does not have the tag of an evaluation
		}
		name = (&Plan{Purpose: p.Purpose, Step: p.Step, Slot: p.Slot}).GroupID()
	case *RunStarted:
		name = fmt.Sprintf("start-%04d", p.Attempt)
	case *RunFinished:
		name = fmt.Sprintf("end-%04d", p.Attempt)
	case *PolicyUpdated:
		name = fmt.Sprintf("%s-v%06d", p.Role, p.Version)
		dir, err := p.Checkpoint.Dir()
		switch end := fmt.Sprintf("/checkpoints/%s/v%06d", p.Role, p.Version); {
		case err != nil:
			return err
		case !strings.HasSuffix(dir, end):
			return invalid("checkpoint.uri", "%q does not end in %s", clip(p.Checkpoint.URI), end)
		case p.Step != p.Version:
			return invalid("step", "%d, but step %d makes v%d", p.Step, p.Version, p.Version)
		}
	default:
		if !ok {
			return nil
		}
		// A worker would wait for such a version for ever.
		newest := plan.Step
		if plan.Purpose == PurposeTrain {
			newest = max(0, plan.Step-1)
		}
		if v := max(plan.CodeVersion, plan.TestVersion); v > newest {
			return invalid("plan", "wants v%d of a policy, but the newest one before step %d is v%d", v, plan.Step, newest)
		}
	}
	if name != e.Group {
		return invalid("group", "the payload is that of %s", clip(name))
	}
	return nil
}

// mayFollow reports whether the cause is an event of the same group. The log
// checks that it has the cause.
func (e *Event) mayFollow() bool {
	if _, ok := causesOf[e.Type]; !ok && e.Type != TypeGroupDropped {
		return false
	}
	cause := rootID(e.Run, TypeProblemPosed, e.Group)
	return e.CausationID == cause || descends(e.CausationID, cause, TypeProblemPosed)
}

// descends reports whether id is that of an event that follows from the event
// root of type t, directly or not.
func descends(id, root string, t Type) bool {
	for effect, causes := range causesOf {
		if !slices.Contains(causes, t) {
			continue
		}
		if next := DeriveID(root, effect); id == next || descends(id, next, effect) {
			return true
		}
	}
	return false
}
