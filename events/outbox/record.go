package outbox

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"codea1/events"
)

// errRecord is wrapped by every error about bytes that are not a whole record.
var errRecord = errors.New("not an outbox record")

// record is a message on disk: its headers under their CloudEvents names, and
// its payload as it is on the bus, so that publishing it again repeats every
// byte.
type record struct {
	Headers map[string]string `msgpack:"headers"`
	Data    []byte            `msgpack:"data"`
}

// encodeRecord appends the record of a message to buf.
func encodeRecord(buf *bytes.Buffer, m *events.Message) error {
	r := record{Headers: make(map[string]string), Data: m.Data}
	m.Headers("", func(name, value string) { r.Headers[name] = value })
	buf.Grow(len(m.Data) + 1<<10)
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(buf)
	return enc.Encode(&r)
}

func decodeRecord(raw []byte) (events.Message, error) {
	var r record
	rest := bytes.NewReader(raw)
	if err := msgpack.NewDecoder(rest).Decode(&r); err != nil {
		return events.Message{}, fmt.Errorf("%w: %w", errRecord, err)
	}
	if rest.Len() > 0 {
		return events.Message{}, fmt.Errorf("%w: %d bytes follow it", errRecord, rest.Len())
	}
	m, err := events.ParseMessage("", func(name string) string { return r.Headers[name] }, r.Data)
	if err != nil {
		return events.Message{}, fmt.Errorf("%w: %w", errRecord, err)
	}
	return m, nil
}
