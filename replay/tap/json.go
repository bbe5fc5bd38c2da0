package tap

import (
	"strconv"
	"time"

	"codea1/events"
	"codea1/replay/export"
)

// appendJSON appends an event as a line of JSON, with the names of `replay export`.
// The read-only login has no positions.
func appendJSON(b []byte, e *events.Event, at events.Position) []byte {
	b = append(b, '{')
	field := func(name, value string) {
		b = export.AppendString(append(append(append(b, '"'), name...), `":`...), value)
		b = append(b, ',')
	}
	if at != "" {
		field("position", string(at))
	}
	field("id", e.ID)
	field("type", string(e.Type))
	b = append(strconv.AppendInt(append(b, `"schema_version":`...), int64(e.SchemaVersion), 10), ',')
	field("run", e.Run)
	field("group", e.Group)
	field("source", e.Source)
	field("time", e.Time.Format(time.RFC3339Nano))
	field("causation_id", e.CausationID)
	b = export.AppendPayload(append(b, `"payload":`...), e.Payload)
	return append(b, "}\n"...)
}
