package kafkabus

import (
	"encoding/json"
	"fmt"
	"time"

	"codea1/events"
)

// verb says what a note is about.
type verb string

const (
	verbEvent   verb = "event"   // an event is stored
	verbJoin    verb = "join"    // a set of consumers wants these types
	verbClaim   verb = "claim"   // a member takes messages, free or with an expired lease
	verbExtend  verb = "extend"  // their holder needs more time
	verbFinish  verb = "finish"  // they shall not be delivered again
	verbRetry   verb = "retry"   // their holder gives them back, for later
	verbRelease verb = "release" // their holder gives them back unseen
	verbDead    verb = "dead"    // finished as a dead letter
	verbAgain   verb = "again"   // a dead letter is redelivered: not finished any more
)

// note is one record of a journal.
type note struct {
	Verb verb `json:"verb"`

	// Of an event: what it is and where its payload lies, in the topic of its
	// type.
	ID        string      `json:"id,omitempty"`
	Type      events.Type `json:"type,omitempty"`
	Group     string      `json:"group,omitempty"`
	Partition int         `json:"partition,omitempty"`
	Offset    int64       `json:"offset,omitempty"`
	Bytes     int         `json:"bytes,omitempty"` // of the payload

	// Of a set of consumers.
	Set         string        `json:"set,omitempty"`
	Types       []events.Type `json:"types,omitempty"`
	Member      string        `json:"member,omitempty"`
	MaxInFlight int           `json:"max,omitempty"` // of a claim: messages held by the set, at most
	Wait        time.Duration `json:"wait_ns,omitempty"`
	Items       []item        `json:"items,omitempty"`
	Copy        *int64        `json:"copy,omitempty"` // of a message put off or redelivered: offset in the set's retry topic

	// Of a dead letter, with Group.
	Round  int       `json:"round,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Time   time.Time `json:"time,omitzero"`
}

// item names a message of a set by the journal offset of its event note.
type item struct {
	At int64 `json:"at"`
	// Turn is, of a claim, the number of changes its member had seen the message
	// go through; otherwise the attempt that its member holds.
	Turn int `json:"turn"`
}

func parseNote(data []byte) (note, error) {
	var n note
	if err := json.Unmarshal(data, &n); err != nil {
		return note{}, fmt.Errorf("%w: note: %w", events.ErrMalformed, err)
	}
	switch n.Verb {
	case verbEvent:
		if _, err := parseID(n.ID); err != nil {
			return note{}, err
		}
		if events.CurrentVersion(n.Type) == 0 {
			return note{}, fmt.Errorf("note: %w: %q", events.ErrUnknownType, n.Type)
		}
		if n.Partition < 0 || n.Offset < 0 || n.Bytes < 0 || n.Bytes > events.MaxPayloadBytes {
			return note{}, fmt.Errorf("%w: note: payload of %d bytes at %d:%d", events.ErrMalformed, n.Bytes, n.Partition, n.Offset)
		}
	case verbJoin, verbClaim, verbExtend, verbFinish, verbRetry, verbRelease, verbDead, verbAgain:
		if err := events.ValidName(n.Set); err != nil {
			return note{}, fmt.Errorf("note: %w", err)
		}
		if len(n.Items) > maxFetch {
			return note{}, fmt.Errorf("%w: note: %d items, limit %d", events.ErrMalformed, len(n.Items), maxFetch)
		}
		if n.Copy != nil && (*n.Copy < 0 || len(n.Items) != 1) {
			return note{}, fmt.Errorf("%w: note: a copy at %d of %d messages", events.ErrMalformed, *n.Copy, len(n.Items))
		}
		if len(n.Reason) > events.MaxReasonBytes {
			return note{}, fmt.Errorf("%w: note: a reason of %d bytes, limit %d", events.ErrMalformed, len(n.Reason), events.MaxReasonBytes)
		}
	default:
		return note{}, fmt.Errorf("%w: note: unknown verb", events.ErrMalformed)
	}
	return n, nil
}
