package deadletter

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"time"

	"codea1/events"
)

// Show is `codea1 deadletter show`.
type Show struct {
	flags
	ID string `arg:"" name:"letter" help:"ID of the dead letter, as list prints it."`
}

// Run shows the dead letter.
func (d *Show) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	bus, err := d.open(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	l, m, err := bus.DeadLetter(ctx, d.RunName, d.ID)
	if err != nil {
		return err
	}
	event := describe(&m)
	if d.JSON {
		return newEncoder(out).Encode(struct {
			letterJSON
			Message eventJSON `json:"message"`
		}{newLetterJSON(&l), event})
	}
	return event.print(out, &l)
}

// eventJSON is the JSON form of a dead letter's event. Payload is the decoded
// msgpack, with packed values in base64. If the bytes are not msgpack, Data has
// them instead.
type eventJSON struct {
	Source    string    `json:"source"`
	Time      time.Time `json:"time"`
	Cause     string    `json:"cause,omitempty"`
	Version   int       `json:"schema_version"`
	Encoding  string    `json:"encoding,omitempty"`
	Bytes     int       `json:"bytes"`
	Malformed string    `json:"malformed,omitempty"` // the error of decoding it
	Payload   any       `json:"payload,omitempty"`
	Data      []byte    `json:"data,omitempty"`
}

func describe(m *events.Message) eventJSON {
	e := eventJSON{
		Source: m.Source, Time: m.Time.UTC(), Cause: m.CausationID, Version: m.SchemaVersion, Encoding: m.Encoding, Bytes: len(m.Data),
	}
	if _, err := m.Decode(); err != nil {
		e.Malformed = err.Error()
	}
	payload, err := m.DecodeAny()
	if err != nil {
		e.Data = m.Data
		return e
	}
	e.Payload = withoutNaN(payload)
	return e
}

// maxDump is the number of bytes shown of a payload that is not msgpack.
const maxDump = 256

func (e *eventJSON) print(out io.Writer, l *events.DeadLetter) error {
	fmt.Fprintf(out, "dead letter  %s\n", l.ID)
	fmt.Fprintf(out, "stage        %s, after %d deliveries in round %d, at %s\n", l.Name, l.Deliveries, l.Round, clock(l.Time))
	fmt.Fprintf(out, "event        %s of %s, made by %s at %s\n", l.Type, l.Group, e.Source, clock(e.Time))
	fmt.Fprintf(out, "reason       %s\n", strings.ReplaceAll(strings.TrimSpace(l.Reason), "\n", "\n             "))
	if e.Malformed != "" {
		fmt.Fprintf(out, "malformed    %s\n", e.Malformed)
	}
	fmt.Fprintf(out, "payload      schema version %d, %d bytes%s\n", e.Version, e.Bytes, strings.TrimRight(" "+e.Encoding, " "))
	if e.Payload == nil {
		_, err := io.WriteString(out, hex.Dump(e.Data[:min(len(e.Data), maxDump)]))
		return err
	}
	text := newEncoder(out)
	text.SetIndent("", "  ")
	return text.Encode(withoutBytes(e.Payload))
}

// withoutNaN replaces NaN and infinities by null, because JSON has none.
func withoutNaN(v any) any {
	return mapped(v, func(v any) any {
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return nil
		}
		return v
	})
}

// withoutBytes replaces packed token ids and log-probs by their number, for
// people to read.
func withoutBytes(v any) any {
	return mapped(v, func(v any) any {
		if b, ok := v.([]byte); ok {
			return fmt.Sprintf("(%d values)", len(b)/4)
		}
		return v
	})
}

// mapped returns v with f applied to every value in it that is not a map or list.
func mapped(v any, f func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		fields := make(map[string]any, len(v))
		for name, field := range v {
			fields[name] = mapped(field, f)
		}
		return fields
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = mapped(item, f)
		}
		return items
	}
	return f(v)
}
