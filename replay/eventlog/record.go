package eventlog

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

// Record is an event in the log.
type Record struct {
	Seq         uint64 // sequence number, from 1
	Message     events.Message
	PayloadHash Hash // SHA-256 of the payload before compression, as it was appended
	Chain       Hash // links this record to the one before it
	// Compacted reports that the payload is without token ids and log-probs: the
	// message decodes, and they are empty.
	Compacted bool
	// Tokens has the number of tokens of each completion of a compacted payload,
	// in order.
	Tokens []int

	bare     *Hash // hash of the payload without tokens; nil if it cannot be compacted
	chainEnd int   // length of the part of the encoded record that the chain covers
}

// Incoming returns the message for appending the record to another log. The
// chain hash there is the same if the events before it are the same.
func (r *Record) Incoming(position events.Position) Incoming {
	return Incoming{Message: r.Message, Position: position, from: r}
}

// ChainAfter returns the chain hash that the record has in a log in which the
// chain hash of the event before it is previous.
func (r *Record) ChainAfter(previous Hash) Hash {
	_, chain := encodeRecord(previous, r)
	return chain
}

// Decode returns the record's event. It returns an error for a payload that is
// neither the appended one nor its compacted form.
func (r *Record) Decode() (*events.Event, error) {
	e, err := r.Message.Decode()
	if err == nil {
		err = r.checkHash(parseHash(e.Hash()))
	} else if raw, rawErr := r.Message.Raw(); rawErr != nil || r.checkHash(hashOf(raw)) != nil {
		err = fmt.Errorf("%w: %w", errPayloadHash, err)
	}
	if err != nil {
		return nil, fmt.Errorf("event %d (%s): %w", r.Seq, r.Message.ID, err)
	}
	return e, nil
}

// IsUnreadable reports whether Record.Decode failed because this build cannot
// decode the published payload. The log is not damaged. A recorder quarantines
// such a message; logs of earlier builds may have it as an event.
func IsUnreadable(err error) bool { return err != nil && !errors.Is(err, errPayloadHash) }

// checkHash compares the hash of the stored payload with the hash that the chain
// covers.
func (r *Record) checkHash(payload Hash) error {
	switch {
	case !r.Compacted && payload == r.PayloadHash:
		return nil
	case r.Compacted && r.bare != nil && bareHash(r.Tokens, payload) == *r.bare:
		return nil
	}
	return errPayloadHash
}

var (
	errPayloadHash = errors.New("payload is not the one that was appended")
	errRecord      = errors.New("malformed record")
)

// recordVersion is the version of the records that this build writes.
const recordVersion = 1

// chainedFrom is the start of the part of a record that the chain covers: after
// the version byte and the chain hash. The version byte is covered, too.
const chainedFrom = 1 + sha256.Size

// encodeRecord returns the encoded record and its chain hash. It does not read
// r.Chain.
func encodeRecord(previous Hash, r *Record) ([]byte, Hash) {
	value, chained := layOut(make([]byte, 0, recordRoom(&r.Message)), r)
	return value, link(previous, r.Seq, value, chained)
}

// recordRoom returns the maximum size of a message's record, without the token
// numbers of a compacted one.
func recordRoom(m *events.Message) int {
	return chainedFrom + 2*sha256.Size + 256 + len(m.Run) + len(m.Group) + len(m.Source) + len(m.TraceParent) + len(m.Data)
}

// layOut appends a record without its chain hash to the empty b. It returns the
// length of the part that the chain covers. It does not read r.Seq.
func layOut(b []byte, r *Record) (value []byte, chained int) {
	m := &r.Message
	b = append(b, recordVersion)
	b = append(b, make([]byte, sha256.Size)...)
	b = append(b, r.PayloadHash[:]...)
	if r.bare == nil {
		b = append(b, 0)
	} else {
		b = append(append(b, 1), r.bare[:]...)
	}
	b = appendEnvelope(b, m)
	chained = len(b)
	if r.Compacted {
		b = appendTokens(append(b, 1), r.Tokens)
	} else {
		b = append(b, 0)
	}
	b = appendText(b, m.Encoding)
	return append(b, m.Data...), chained
}

// link sets the chain hash of a record and returns it.
func link(previous Hash, seq uint64, value []byte, chained int) Hash {
	chain := chainOf(previous, seq, value[:chained])
	copy(value[1:], chain[:])
	return chain
}

// chainOf returns SHA-256(previous chain hash, sequence number, version byte,
// bytes after the chain hash) of the part of a record that the chain covers.
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
	// Separate seconds and nanoseconds hold any time that a header can have.
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
	return appendText(b, m.TraceParent)
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
	if f.flag() {
		r.bare = new(Hash)
		copy(r.bare[:], f.take(sha256.Size))
	}
	m := &r.Message
	m.ID = f.hex(len(eventID{}))
	m.Type = events.Type(f.text())
	m.SchemaVersion = int(f.number())
	m.Run, m.Group, m.Source = f.text(), f.text(), f.text()
	m.Time = f.time()
	if f.flag() {
		m.CausationID, m.CausationHash = f.hex(len(eventID{})), f.hex(len(Hash{}))
	}
	m.TraceParent = f.text()
	r.chainEnd = len(value) - len(f.rest)
	if f.flag() {
		r.Compacted, r.Tokens = true, f.tokens()
	}
	m.Encoding = f.text()
	m.Data = f.rest
	if f.failed {
		return Record{}, fmt.Errorf("%w: envelope is cut off", errRecord)
	}
	return r, nil
}

// fields reads the fields of a record. failed is set when it runs out of bytes.
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
	if n <= 0 || v > math.MaxInt32 { // more than any number here, and within int
		f.failed, f.rest = true, nil
		return 0
	}
	f.rest = f.rest[n:]
	return v
}

// flag reads a byte that is 0 or 1.
func (f *fields) flag() bool {
	b := f.take(1)
	if b == nil || b[0] > 1 {
		f.failed, f.rest = true, nil
		return false
	}
	return b[0] == 1
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
