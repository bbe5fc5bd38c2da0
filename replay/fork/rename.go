package fork

import (
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
)

// renaming gives the events of one run to another: run, IDs and trace follow
// from the name, all else stays, payload and payload hash with it. It knows no
// more than the message, so a log of any length is renamed message by message,
// and the other way round it gives the message back.
type renaming struct{ from, to string }

// apply returns the message as an event of the other run.
func (r renaming) apply(m events.Message) events.Message {
	if m.Run != r.from {
		return m
	}
	old := m
	m.Run = r.to
	switch cause, known := r.cause(&old); {
	case old.CausationID == "" && old.ID == eventlog.RootID(r.from, old.Group, old.Type):
		m.ID = eventlog.RootID(r.to, old.Group, old.Type)
	case known:
		m.CausationID = cause
		if old.ID == events.DeriveID(old.CausationID, old.Type) {
			m.ID = events.DeriveID(cause, old.Type)
		}
	}
	if old.TraceParent == traceParent(old.Run, old.Group, old.ID) {
		m.TraceParent = traceParent(m.Run, m.Group, m.ID)
	}
	return m
}

// cause returns the new ID of the event that a message follows from. An event's
// ID follows from its group and from how the group got there, and there are
// few ways: those of the causes table.
func (r renaming) cause(m *events.Message) (id string, known bool) {
	if m.CausationID == "" {
		return "", false
	}
	old, renamed := eventlog.RootID(r.from, m.Group, events.TypeProblemPosed), eventlog.RootID(r.to, m.Group, events.TypeProblemPosed)
	if m.CausationID == old {
		return renamed, true
	}
	return follow(events.TypeProblemPosed, old, renamed, m.CausationID)
}

// follow looks for an ID among those that follow from old, an event of type t,
// and returns the one that follows from renamed in the same way.
func follow(t events.Type, old, renamed, wanted string) (string, bool) {
	for effect, cause := range events.Causes() {
		if cause != t {
			continue
		}
		x, y := events.DeriveID(old, effect), events.DeriveID(renamed, effect)
		if x == wanted {
			return y, true
		}
		if found, ok := follow(effect, x, y, wanted); ok {
			return found, true
		}
	}
	return "", false
}

// traceParent returns what events.New gives to an event of a group: the trace
// of the group, with a span named after the event.
func traceParent(run, group, id string) string {
	const version, trace, span = len("00-"), 2 * 16, 2 * 8
	t := events.New(run, group, "replay", time.Time{}, events.NewPayload(events.TypeProblemPosed)).TraceParent
	end := version + trace + len("-")
	return t[:end] + id[:span] + t[end+span:]
}
