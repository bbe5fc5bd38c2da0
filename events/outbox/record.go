package outbox

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"codea1/events"
)

// A record is one msgpack map: the headers of the message under their
// CloudEvents names, each a string, and its payload under dataKey as a bin.
// Message.Headers and events.ParseMessage know the fields of an envelope. The
// payload is stored as it is on the bus, so publishing it again repeats every
// byte.
const (
	dataKey          = "data"
	maxRecordHeaders = 32
)

// errRecord is wrapped by every error about bytes that are not a whole record.
var errRecord = errors.New("not an outbox record")

// encodeRecord appends the record of a message to buf.
func encodeRecord(buf *bytes.Buffer, m *events.Message) error {
	var names, values []string
	m.Headers("", func(name, value string) {
		names = append(names, name)
		values = append(values, value)
	})
	buf.Grow(len(m.Data) + 1<<10)
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(buf)
	if err := enc.EncodeMapLen(len(names) + 1); err != nil {
		return err
	}
	for i := range names {
		if err := errors.Join(enc.EncodeString(names[i]), enc.EncodeString(values[i])); err != nil {
			return err
		}
	}
	return errors.Join(enc.EncodeString(dataKey), enc.EncodeBytes(m.Data))
}

func decodeRecord(raw []byte) (events.Message, error) {
	r := bytes.NewReader(raw)
	dec := msgpack.NewDecoder(r)
	n, err := dec.DecodeMapLen()
	if err != nil {
		return events.Message{}, fmt.Errorf("%w: %w", errRecord, err)
	}
	if n < 1 || n > maxRecordHeaders {
		return events.Message{}, fmt.Errorf("%w: a map of %d entries", errRecord, n)
	}
	headers := make(map[string]string, n)
	var data []byte
	for range n {
		name, err := dec.DecodeString()
		if err != nil {
			return events.Message{}, fmt.Errorf("%w: %w", errRecord, err)
		}
		if name == dataKey {
			if data, err = dec.DecodeBytes(); err != nil {
				return events.Message{}, fmt.Errorf("%w: data: %w", errRecord, err)
			}
			continue
		}
		if headers[name], err = dec.DecodeString(); err != nil {
			return events.Message{}, fmt.Errorf("%w: header %q: %w", errRecord, name, err)
		}
	}
	if r.Len() > 0 {
		return events.Message{}, fmt.Errorf("%w: %d bytes follow it", errRecord, r.Len())
	}
	m, err := events.ParseMessage("", func(name string) string { return headers[name] }, data)
	if err != nil {
		return events.Message{}, fmt.Errorf("%w: %w", errRecord, err)
	}
	return m, nil
}
