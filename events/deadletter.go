package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DeadLetters are the messages that a stage gave up on with Delivery.DeadLetter
// and that were not redelivered. A dead letter is evidence and a way to try
// again. The group leaves the pipeline by its group.dropped event, which the
// stage publishes first.
type DeadLetters interface {
	// DeadLetters returns the dead letters of a run, oldest first, at most
	// MaxDeadLetters.
	DeadLetters(ctx context.Context, run string) ([]DeadLetter, error)
	// DeadLetter returns one dead letter with its message, or ErrNoDeadLetter.
	DeadLetter(ctx context.Context, run, id string) (DeadLetter, Message, error)
	// Redeliver removes a dead letter and sends its message to its worker set
	// again, with deliveries counted from 1. It returns ErrNoDeadLetter when there
	// is no dead letter of that ID.
	//
	// It returns ErrGroupEnded after the end of the group: a step was completed
	// without the group, and a second end would contradict the first.
	Redeliver(ctx context.Context, run, id string) error
}

// DeadLetter describes a message that a stage gave up on.
type DeadLetter struct {
	ID         string // unique in its run; see DeadLetterID
	Name       string // the worker set
	EventID    string // the message, with Type and Group
	Type       Type
	Group      string
	Round      int       // 1 for the first dead letter of the message, 2 for the one after its redelivery
	Deliveries int       // deliveries in this round
	Reason     string    // at most MaxReasonBytes
	Time       time.Time // by the clock of the replica that gave up
}

const (
	// MaxDeadLetters bounds the dead letters that DeadLetters returns.
	MaxDeadLetters = 10_000
	// MaxReasonBytes bounds the reason of a dead letter; the rest is cut off.
	MaxReasonBytes = 2 << 10
)

var (
	// ErrNoDeadLetter is returned for a dead letter that does not exist or was
	// redelivered.
	ErrNoDeadLetter = errors.New("no such dead letter")
	// ErrGroupEnded is returned for a redelivery into a group that has ended.
	ErrGroupEnded = errors.New("the group has ended")
)

// DeadLetterID returns the ID of a dead letter: the worker set, the event ID and
// the round, joined by dots. None of the three contains a dot.
func DeadLetterID(name, eventID string, round int) string {
	return name + "." + eventID + "." + strconv.Itoa(round)
}

// ParseDeadLetterID is the inverse of DeadLetterID. Its error is an
// ErrNoDeadLetter.
func ParseDeadLetterID(id string) (name, eventID string, round int, err error) {
	parts := strings.Split(id, ".")
	if len(parts) == 3 && ValidName(parts[0]) == nil && isHex(parts[1], 2*idBytes) {
		round, err = strconv.Atoi(parts[2])
		if err == nil && round > 0 && strconv.Itoa(round) == parts[2] {
			return parts[0], parts[1], round, nil
		}
	}
	return "", "", 0, fmt.Errorf("%w: %q does not have the form SET.EVENT.ROUND", ErrNoDeadLetter, clip(id))
}

// ClipReason returns the reason as it is stored: valid UTF-8 of at most
// MaxReasonBytes.
func ClipReason(reason string) string {
	if len(reason) > MaxReasonBytes {
		reason = reason[:MaxReasonBytes]
	}
	return strings.ToValidUTF8(reason, "")
}
