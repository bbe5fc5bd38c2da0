package fork

import (
	"slices"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
)

// renaming turns events of one run into events of another. It changes the run,
// and the IDs and the trace that derive from its name; payload and payload hash
// stay. It needs only the message, so a log is renamed message by message. The
// reverse renaming restores the message.
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

// cause returns the new ID of the cause of a message. An ID derives from the name
// of the group and the types of the events before it; events.Causes has the few
// possible chains of types.
func (r renaming) cause(m *events.Message) (id string, known bool) {
	if m.CausationID == "" {
		return "", false
	}
	const root = events.TypeProblemPosed
	return follow(root, eventlog.RootID(r.from, m.Group, root), eventlog.RootID(r.to, m.Group, root), m.CausationID)
}

// follow searches old, an event of type t, and its descendants for an ID. It
// returns the ID of renamed or of its same descendant.
func follow(t events.Type, old, renamed, wanted string) (string, bool) {
	if old == wanted {
		return renamed, true
	}
	for effect, causes := range events.Causes() {
		if !slices.Contains(causes, t) {
			continue
		}
		if id, ok := follow(effect, events.DeriveID(old, effect), events.DeriveID(renamed, effect), wanted); ok {
			return id, true
		}
	}
	return "", false
}

// traceParent returns the trace parent that events.New gives to an event: the
// trace of the group, and a span with the ID of the event.
func traceParent(run, group, id string) string {
	const version, trace, span = len("00-"), 2 * 16, 2 * 8
	t := events.New(run, group, "replay", time.Time{}, events.NewPayload(events.TypeProblemPosed)).TraceParent
	end := version + trace + len("-")
	return t[:end] + id[:span] + t[end+span:]
}
