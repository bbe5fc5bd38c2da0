package events

import (
	"fmt"
	"strconv"
	"time"
)

// Header names of CloudEvents 1.0 binary mode. A bus adds a prefix, "ce-" on NATS
// and "ce_" on Kafka, except to content type and content encoding.
const (
	attrSpecVersion   = "specversion"
	attrID            = "id"
	attrType          = "type"
	attrSource        = "source"
	attrSubject       = "subject"
	attrTime          = "time"
	attrRun           = "run"
	attrCausationID   = "causationid"
	attrCausationHash = "causationhash"
	attrSchemaVersion = "schemaversion"
	attrTraceParent   = "traceparent"

	headerContentType     = "content-type"
	headerContentEncoding = "content-encoding"
	cloudEventsVersion    = "1.0"
)

// Headers calls set for every header of the message. CloudEvents attributes get
// the prefix.
func (m *Message) Headers(prefix string, set func(name, value string)) {
	attr := func(name, value string) {
		if value != "" {
			set(prefix+name, value)
		}
	}
	attr(attrSpecVersion, cloudEventsVersion)
	attr(attrID, m.ID)
	attr(attrType, string(m.Type))
	attr(attrSource, m.Source)
	attr(attrSubject, m.Group)
	attr(attrTime, m.Time.UTC().Format(time.RFC3339Nano))
	attr(attrRun, m.Run)
	attr(attrCausationID, m.CausationID)
	attr(attrCausationHash, m.CausationHash)
	attr(attrSchemaVersion, strconv.Itoa(m.SchemaVersion))
	attr(attrTraceParent, m.TraceParent)
	set(headerContentType, ContentType)
	if m.Encoding != EncodingNone {
		set(headerContentEncoding, m.Encoding)
	}
}

// ParseMessage is the inverse of Headers. get returns the value of a header, or ""
// for a missing one. The error names the header.
func ParseMessage(prefix string, get func(name string) string, data []byte) (Message, error) {
	if v := get(prefix + attrSpecVersion); v != cloudEventsVersion {
		return Message{}, fmt.Errorf("header %s%s: want %q, have %q", prefix, attrSpecVersion, cloudEventsVersion, clip(v))
	}
	if v := get(headerContentType); v != ContentType {
		return Message{}, fmt.Errorf("header %s: want %q, have %q", headerContentType, ContentType, clip(v))
	}
	at, err := time.Parse(time.RFC3339Nano, get(prefix+attrTime))
	if err != nil {
		return Message{}, fmt.Errorf("header %s%s: %w", prefix, attrTime, err)
	}
	version, err := strconv.Atoi(get(prefix + attrSchemaVersion))
	if err != nil {
		return Message{}, fmt.Errorf("header %s%s: %w", prefix, attrSchemaVersion, err)
	}
	m := Message{
		Envelope: Envelope{
			ID: get(prefix + attrID), Type: Type(get(prefix + attrType)), SchemaVersion: version,
			Run: get(prefix + attrRun), Group: get(prefix + attrSubject), Source: get(prefix + attrSource), Time: at.UTC(),
			CausationID: get(prefix + attrCausationID), CausationHash: get(prefix + attrCausationHash),
			TraceParent: get(prefix + attrTraceParent),
		},
		Encoding: get(headerContentEncoding),
		Data:     data,
	}
	if err := m.Validate(); err != nil {
		return Message{}, err
	}
	return m, nil
}
