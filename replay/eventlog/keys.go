package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"codea1/events"
)

// Key spaces. FORMAT.md describes their values.
const (
	spaceEvents  = 'e' // sequence number: record
	spaceIndex   = 'x' // bucket, first event of the chunk: index entries
	spaceBook    = 'b' // problem, order: entry of the Mistake Book
	spaceDeltas  = 'd' // sequence number: changes of the Mistake Book by that event
	spaceRefused = 'r' // event ID, payload hash: the standing event

	spaceQuarantine = 'q' // number: a message that is no event
)

var (
	keyFormat = []byte("m/format") // version of the layout
	keyHead   = []byte("m/head")   // end of the log
	keyLarge  = []byte("m/large")  // last event in the value log
	keyBook   = []byte("m/book")   // description of the stored Mistake Book
	keyState  = []byte("m/state")  // snapshot of the run's state
	keyTokens = []byte("m/tokens") // end of compaction
	keyIndex  = []byte("m/index")  // last event in a chunk of the index

	keyQuarantine = []byte("m/quarantine") // counts of the messages that are no events
)

// FormatVersion is the version of the layout this build writes.
const FormatVersion = 1

// typeCodes are stored in the user-meta byte of an event's key, so that Read
// skips events without reading their values. A code is never reused.
var typeCodes = map[events.Type]byte{
	events.TypeRunStarted:     1,
	events.TypeProblemPosed:   2,
	events.TypeCodeSampled:    3,
	events.TypeTestsSampled:   4,
	events.TypeCodeExecuted:   5,
	events.TypeGroupRewarded:  6,
	events.TypeGroupDropped:   7,
	events.TypePolicyUpdated:  8,
	events.TypeEvalScored:     9,
	events.TypeStageHeartbeat: 10,
	events.TypeRunFinished:    11,
	events.TypeCodeJudged:     12,
	events.TypeRewardShadowed: 13,
}

// eventID is the binary form of an event's ID.
type eventID [16]byte

// parseID reads an ID that Envelope.Validate has accepted.
func parseID(s string) (id eventID) {
	_, _ = hex.Decode(id[:], []byte(s))
	return id
}

func (id eventID) String() string { return hex.EncodeToString(id[:]) }

// Hash is a SHA-256.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(h) {
		return fmt.Errorf("a hash of %d digits, want %d", len(text), hex.EncodedLen(len(h)))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

func hashOf(b []byte) Hash { return sha256.Sum256(b) }

func parseHash(s string) (h Hash) {
	_, _ = hex.Decode(h[:], []byte(s))
	return h
}

func encodeSeq(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

func eventKey(seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{spaceEvents}, seq)
}

func deltaKey(seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{spaceDeltas}, seq)
}

// seqOf returns the sequence number in the key of an event or of its deltas.
func seqOf(key []byte) (uint64, bool) {
	if len(key) != 9 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}

// refusal identifies a refused message: its ID alone may be that of an event in
// the log.
type refusal struct {
	id      eventID
	payload Hash
}

func refusedKey(r refusal) []byte {
	return append(append([]byte{spaceRefused}, r.id[:]...), r.payload[:]...)
}

// bookKey returns the key of an entry of the Mistake Book. The problem's ID is
// hashed because it may exceed the length of a key.
func bookKey(problemID string, order uint64) []byte {
	sum := sha256.Sum256([]byte(problemID))
	return binary.BigEndian.AppendUint64(append([]byte{spaceBook}, sum[:16]...), order)
}
