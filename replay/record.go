package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"codea1/events"
)

// Record is an event in its place in the log.
type Record struct {
	Seq         uint64 // sequence number, from 1
	Message     events.Message
	PayloadHash Hash // SHA-256 of the payload before compression
	Chain       Hash // links this record to the one before it
}

// Decode returns the record's event. A payload that is not the one that was
// appended gives an error.
func (r *Record) Decode() (*events.Event, error) {
	e, err := r.Message.Decode()
	if err != nil {
		return nil, fmt.Errorf("event %d (%s): %w", r.Seq, r.Message.ID, err)
	}
	if parseHash(e.Hash()) != r.PayloadHash {
		return nil, fmt.Errorf("event %d (%s): %w", r.Seq, r.Message.ID, errPayloadHash)
	}
	return e, nil
}

var (
	errPayloadHash = errors.New("payload is not the one that was appended")
	errRecord      = errors.New("malformed record")
)

const (
	recordVersion = 1
	// chainedFrom is where a record's chained part starts: behind the version
	// byte and the chain hash.
	chainedFrom = 1 + sha256.Size
)

// encodeRecord returns the value of an event's key, and its chain hash.
func encodeRecord(previous Hash, seq uint64, m *events.Message, payload Hash) ([]byte, Hash) {
	size := chainedFrom + len(payload) + 256 + len(m.Run) + len(m.Group) + len(m.Source) + len(m.TraceParent) + len(m.Data)
	b := make([]byte, chainedFrom, size)
	b[0] = recordVersion
	b = append(b, payload[:]...)
	b = appendEnvelope(b, m)
	b = append(b, m.Data...)
	chain := chainOf(previous, seq, b)
	copy(b[1:], chain[:])
	return b, chain
}

// chainOf is SHA-256(previous chain hash, sequence number, version byte,
// everything behind the chain hash).
func chainOf(previous Hash, seq uint64, value []byte) Hash {
	h := sha256.New()
	h.Write(previous[:])
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], seq)
	h.Write(number[:])
	h.Write(value[:1])
	h.Write(value[chainedFrom:])
	var chain Hash
	h.Sum(chain[:0])
	return chain
}

func appendEnvelope(b []byte, m *events.Message) []byte {
	id := parseID(m.ID)
	b = append(b, id[:]...)
	b = appendText(b, string(m.Type))
	b = binary.AppendUvarint(b, uint64(m.SchemaVersion))
	b = appendText(b, m.Run)
	b = appendText(b, m.Group)
	b = appendText(b, m.Source)
	// Seconds and nanoseconds apart: any time a header can carry fits.
	b = binary.AppendVarint(b, m.Time.Unix())
	b = binary.AppendUvarint(b, uint64(m.Time.Nanosecond()))
	if m.CausationID == "" {
		b = append(b, 0)
	} else {
		cause, payload := parseID(m.CausationID), parseHash(m.CausationHash)
		b = append(b, 1)
		b = append(b, cause[:]...)
		b = append(b, payload[:]...)
	}
	b = appendText(b, m.TraceParent)
	return appendText(b, m.Encoding)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeRecord is the inverse of encodeRecord. The message's data aliases value.
func decodeRecord(seq uint64, value []byte) (Record, error) {
	if len(value) < chainedFrom+sha256.Size {
		return Record{}, fmt.Errorf("%w: %d bytes", errRecord, len(value))
	}
	if value[0] != recordVersion {
		return Record{}, fmt.Errorf("%w: record version %d, this build knows %d", ErrNewerFormat, value[0], recordVersion)
	}
	r := Record{Seq: seq}
	copy(r.Chain[:], value[1:])
	copy(r.PayloadHash[:], value[chainedFrom:])
	f := fields{rest: value[chainedFrom+sha256.Size:]}
	m := &r.Message
	m.ID = f.hex(len(eventID{}))
	m.Type = events.Type(f.text())
	m.SchemaVersion = int(f.number())
	m.Run, m.Group, m.Source = f.text(), f.text(), f.text()
	m.Time = f.time()
	if cause := f.take(1); cause != nil && cause[0] != 0 {
		m.CausationID, m.CausationHash = f.hex(len(eventID{})), f.hex(len(Hash{}))
	}
	m.TraceParent, m.Encoding = f.text(), f.text()
	m.Data = f.rest
	if f.failed {
		return Record{}, fmt.Errorf("%w: envelope is cut off", errRecord)
	}
	return r, nil
}

// fields reads an envelope and remembers whether it ran out of bytes.
type fields struct {
	rest   []byte
	failed bool
}

func (f *fields) take(n int) []byte {
	if n < 0 || n > len(f.rest) {
		f.failed, f.rest = true, nil
		return nil
	}
	b := f.rest[:n:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) number() uint64 {
	v, n := binary.Uvarint(f.rest)
	if n <= 0 || v > math.MaxInt32 { // above every number here, and safe as an int
		f.failed, f.rest = true, nil
		return 0
	}
	f.rest = f.rest[n:]
	return v
}

func (f *fields) text() string     { return string(f.take(int(f.number()))) }
func (f *fields) hex(n int) string { return hex.EncodeToString(f.take(n)) }

func (f *fields) time() time.Time {
	seconds, n := binary.Varint(f.rest)
	if n <= 0 {
		f.failed, f.rest = true, nil
		return time.Time{}
	}
	f.rest = f.rest[n:]
	return time.Unix(seconds, int64(f.number())).UTC()
}
