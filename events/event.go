package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Envelope holds the type, the origin and the cause of an event: all that routing
// needs without decoding the payload.
type Envelope struct {
	ID            string    // 32 hex digits; equal IDs are the same event
	Type          Type      // for example problem.posed
	SchemaVersion int       // version of the payload's schema, from 1
	Run           string    // the run the event belongs to
	Group         string    // the group; in events of no group, their subject
	Source        string    // the replica that made it, for example execution-0
	Time          time.Time // when it was made; no decision depends on it
	CausationID   string    // ID of the event that caused this one; empty for a root
	CausationHash string    // hash of that event's payload; empty for a root
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
		return invalid("causationid", "want both causationid and causationhash, or neither")
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
	encoded *Message // set by EncodeOnce
}

// Hash returns the SHA-256 of the encoded payload before compression, in hex.
// It is empty until the event is encoded or decoded.
func (e *Event) Hash() string {
	hash := e.hash
	if hash == "" && e.encoded != nil {
		// An encoded message can be decoded: no error is possible.
		_ = e.encoded.WithRaw(func(_ []byte, of func() string) error { hash = of(); return nil })
	}
	return hash
}

// New makes a root event: an event without a cause. Its ID derives from run, type
// and group, so a group that is posed twice gives one event.
func New(run, group, source string, at time.Time, payload Payload) *Event {
	t := payload.EventType()
	id := rootID(run, t, group)
	return &Event{
		Envelope: Envelope{
			ID: id, Type: t, SchemaVersion: registry[t].version, Run: run, Group: group,
			Source: source, Time: at.UTC(), TraceParent: traceParent(run, group, id),
		},
		Payload: payload,
	}
}

// Caused makes an event that follows from cause, in the same run and group. Encode
// or decode the cause first, because its hash is needed.
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

// DeriveID returns the ID of the event of type t that follows from causeID.
func DeriveID(causeID string, t Type) string {
	return deriveID("cause", causeID, string(t))
}

// rootID returns the ID of an event without a cause.
func rootID(run string, t Type, group string) string { return deriveID("root", run, string(t), group) }

func deriveID(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		// The length makes ("ab","c") and ("a","bc") different.
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:idBytes])
}

// traceParent returns the W3C trace context of an event: one trace ID for a group,
// one span ID for an event.
func traceParent(run, group, id string) string {
	return "00-" + deriveID("trace", run, group) + "-" + id[:16] + "-01"
}
