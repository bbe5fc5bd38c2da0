package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"codea1/events"
)

// Key spaces. Events sort by sequence number: big-endian.
const (
	spaceEvents  = 'e' // sequence number: record
	spaceIndex   = 'x' // first bits of the ID, first event of a chunk: IDs, and where their events are
	spaceBook    = 'b' // problem, order: test of the Mistake Book
	spaceDeltas  = 'd' // sequence number: what a group.rewarded event changes in the Mistake Book
	spaceRefused = 'r' // event ID, payload hash: the event that stands instead
)

var (
	keyFormat = []byte("m/format") // version of the layout
	keyHead   = []byte("m/head")   // where the log ends
	keyLarge  = []byte("m/large")  // sequence number of the last event in the value log
	keyBook   = []byte("m/book")   // what the stored Mistake Book stands for
	keyState  = []byte("m/state")  // where the run stands, as a snapshot
	keyTokens = []byte("m/tokens") // up to where payloads have lost their tokens
	keyIndex  = []byte("m/index")  // up to where chunks have the event IDs
)

// FormatVersion is the version of the layout this build writes.
const FormatVersion = 1

// typeCodes stand in the user-meta byte of an event's key, where a scan sees
// them without reading the value. A code is never reused.
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

// seqOf returns the number in the key of an event or of its deltas.
func seqOf(key []byte) (uint64, bool) {
	if len(key) != 9 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}

// refusal names a refused event: an ID alone could be that of the event that
// stands.
type refusal struct {
	id      eventID
	payload Hash
}

func refusedKey(r refusal) []byte {
	return append(append([]byte{spaceRefused}, r.id[:]...), r.payload[:]...)
}

// bookKey places a test. The problem's ID is hashed: it may be longer than a
// key can be.
func bookKey(problemID string, order uint64) []byte {
	sum := sha256.Sum256([]byte(problemID))
	return binary.BigEndian.AppendUint64(append([]byte{spaceBook}, sum[:16]...), order)
}
