package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Envelope says what an event is, where it came from and what caused it. It
// holds everything a consumer needs to route an event without decoding it.
type Envelope struct {
	ID            string    // 32 hex digits; equal IDs are the same event
	Type          Type      // for example problem.posed
	SchemaVersion int       // version of the payload's schema, from 1
	Run           string    // the run the event belongs to
	Group         string    // the group, or what else the event is about
	Source        string    // the stage instance that made it
	Time          time.Time // when it was made; information, never input
	CausationID   string    // ID of the event that caused this one; empty for a root
	CausationHash string    // Hash of that event's payload; empty for a root
	TraceParent   string    // W3C trace context; one trace per group
}

// Validate checks every invariant of an envelope; the error names the field.
func (e *Envelope) Validate() error {
	if !isHex(e.ID, 2*idBytes) {
		return invalid("id", "want %d hex digits, have %q", 2*idBytes, clip(e.ID))
	}
	if _, ok := registry[e.Type]; !ok {
		return fmt.Errorf("%w: %q", ErrUnknownType, clip(string(e.Type)))
	}
	if e.SchemaVersion < 1 {
		return invalid("schemaversion", "want 1 or more, have %d", e.SchemaVersion)
	}
	if err := checkToken("run", e.Run); err != nil {
		return err
	}
	if err := checkToken("group", e.Group); err != nil {
		return err
	}
	if e.Source == "" || len(e.Source) > MaxTokenBytes {
		return invalid("source", "want 1 to %d bytes, have %d", MaxTokenBytes, len(e.Source))
	}
	if e.Time.IsZero() {
		return invalid("time", "is not set")
	}
	if e.CausationID == "" != (e.CausationHash == "") {
		return invalid("causationid", "a cause is named by id and hash together")
	}
	if e.CausationID != "" && !isHex(e.CausationID, 2*idBytes) {
		return invalid("causationid", "want %d hex digits, have %q", 2*idBytes, clip(e.CausationID))
	}
	if e.CausationHash != "" && !isHex(e.CausationHash, 2*sha256.Size) {
		return invalid("causationhash", "want %d hex digits, have %q", 2*sha256.Size, clip(e.CausationHash))
	}
	if len(e.TraceParent) > MaxTokenBytes {
		return invalid("traceparent", "want at most %d bytes, have %d", MaxTokenBytes, len(e.TraceParent))
	}
	return nil
}

// Event is one immutable fact.
type Event struct {
	Envelope
	Payload Payload

	hash    string
	encoded *Message // by EncodeOnce
}

// Hash returns the SHA-256 of the encoded payload before compression, in hex.
// It is known once the event has been encoded or decoded and empty before.
func (e *Event) Hash() string {
	hash := e.hash
	if hash == "" && e.encoded != nil {
		// What was encoded can be decoded: there is no error to look at.
		_ = e.encoded.WithRaw(func(_ []byte, of func() string) error { hash = of(); return nil })
	}
	return hash
}

// New makes a root event: one that no other event of the run caused. Its ID
// follows from run, type and group, so posing the same group twice is posing
// it once.
func New(run, group, source string, at time.Time, payload Payload) *Event {
	t := payload.EventType()
	id := deriveID("root", run, string(t), group)
	return &Event{
		Envelope: Envelope{
			ID: id, Type: t, SchemaVersion: registry[t].version, Run: run, Group: group,
			Source: source, Time: at.UTC(), TraceParent: traceParent(run, group, id),
		},
		Payload: payload,
	}
}

// Caused makes the event of the given payload that cause leads to, in the
// same run and group. The cause must have been encoded or decoded, which
// fixes its hash.
func Caused(cause *Event, source string, at time.Time, payload Payload) *Event {
	t := payload.EventType()
	id := DeriveID(cause.ID, t)
	return &Event{
		Envelope: Envelope{
			ID: id, Type: t, SchemaVersion: registry[t].version, Run: cause.Run, Group: cause.Group,
			Source: source, Time: at.UTC(), CausationID: cause.ID, CausationHash: cause.Hash(),
			TraceParent: traceParent(cause.Run, cause.Group, id),
		},
		Payload: payload,
	}
}

// idBytes is the length of an event ID before hex: 128 bits of SHA-256.
const idBytes = 16

// DeriveID returns the ID of the event of type t that causeID leads to.
func DeriveID(causeID string, t Type) string {
	return deriveID("cause", causeID, string(t))
}

func deriveID(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		// The length keeps ("ab","c") apart from ("a","bc").
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:idBytes])
}

// traceParent gives all events of a group one trace id, and each its own span.
func traceParent(run, group, id string) string {
	return "00-" + deriveID("trace", run, group) + "-" + id[:16] + "-01"
}
