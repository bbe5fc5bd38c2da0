package kafkabus

import (
	"encoding/json"
	"fmt"
	"time"

	"codea1/events"
)

// changeKind is the kind of a change.
type changeKind string

const (
	kindEvent      changeKind = "event"       // an event is stored
	kindJoin       changeKind = "join"        // a worker set consumes these types
	kindClaim      changeKind = "claim"       // a member takes events that are free or whose claim has expired
	kindExtend     changeKind = "extend"      // the holder needs more time
	kindFinish     changeKind = "finish"      // the events are not delivered again
	kindRetry      changeKind = "retry"       // the holder gives the events back, for later
	kindRelease    changeKind = "release"     // the holder gives the events back without having delivered them
	kindDeadLetter changeKind = "dead_letter" // the event is finished as a dead letter
	kindRedeliver  changeKind = "redeliver"   // a dead letter is redelivered: not finished any more
)

// change is one record of a control topic.
type change struct {
	Kind changeKind `json:"kind"`

	// Fields of an event change: the event, and the location of its payload in
	// the topic of its type.
	ID        string      `json:"id,omitempty"`
	Type      events.Type `json:"type,omitempty"`
	Group     string      `json:"group,omitempty"`
	Partition int         `json:"partition,omitempty"`
	Offset    int64       `json:"offset,omitempty"`
	Bytes     int         `json:"bytes,omitempty"` // size of the payload
	// Replaces is the control offset of the last change with the same type and
	// group. That message's payload is no event.
	Replaces *int64 `json:"replaces,omitempty"`

	// Fields of a worker set.
	Set         string        `json:"set,omitempty"`
	Types       []events.Type `json:"types,omitempty"`
	Member      string        `json:"member,omitempty"`
	MaxInFlight int           `json:"max,omitempty"` // with a claim: limit of the events that the worker set holds
	Wait        time.Duration `json:"wait_ns,omitempty"`
	Items       []item        `json:"items,omitempty"`
	Copy        *int64        `json:"copy,omitempty"` // with a retry or redelivery: offset of the copy in the retry topic

	// Fields of a dead letter, with Group.
	Round  int       `json:"round,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Time   time.Time `json:"time,omitzero"`
}

// item names an event by the control offset of its event change.
type item struct {
	At int64 `json:"at"`
	// Turn is, with a claim, the number of changes of the event that the member
	// had read; otherwise the number of the delivery that the member holds.
	Turn int `json:"turn"`
}

func parseChange(data []byte) (change, error) {
	var n change
	if err := json.Unmarshal(data, &n); err != nil {
		return change{}, fmt.Errorf("%w: control change: %w", events.ErrMalformed, err)
	}
	switch n.Kind {
	case kindEvent:
		if _, err := parseID(n.ID); err != nil {
			return change{}, err
		}
		if events.CurrentVersion(n.Type) == 0 {
			return change{}, fmt.Errorf("control change: %w: %q", events.ErrUnknownType, n.Type)
		}
		if n.Partition < 0 || n.Offset < 0 || n.Bytes < 0 || n.Bytes > events.MaxPayloadBytes {
			return change{}, fmt.Errorf("%w: control change: payload of %d bytes at %d:%d", events.ErrMalformed, n.Bytes, n.Partition, n.Offset)
		}
	case kindJoin, kindClaim, kindExtend, kindFinish, kindRetry, kindRelease, kindDeadLetter, kindRedeliver:
		if err := events.ValidName(n.Set); err != nil {
			return change{}, fmt.Errorf("control change: %w", err)
		}
		if len(n.Items) > maxFetch {
			return change{}, fmt.Errorf("%w: control change: %d items, limit %d", events.ErrMalformed, len(n.Items), maxFetch)
		}
		if n.Copy != nil && (*n.Copy < 0 || len(n.Items) != 1) {
			return change{}, fmt.Errorf("%w: control change: a copy at %d of %d events", events.ErrMalformed, *n.Copy, len(n.Items))
		}
		if len(n.Reason) > events.MaxReasonBytes {
			return change{}, fmt.Errorf("%w: control change: a reason of %d bytes, limit %d", events.ErrMalformed, len(n.Reason), events.MaxReasonBytes)
		}
	default:
		return change{}, fmt.Errorf("%w: control change: unknown kind", events.ErrMalformed)
	}
	return n, nil
}
