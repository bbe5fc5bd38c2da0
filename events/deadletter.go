package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DeadLetters are the messages that a set of consumers gave up on with
// Delivery.DeadLetter, and that nobody has sent back to it. A dead letter is
// evidence and a way to try again; that the group has left the pipeline is said
// by its group.dropped, which the set publishes first.
type DeadLetters interface {
	// DeadLetters returns the dead letters of a run, oldest first, the oldest
	// MaxDeadLetters if there are more.
	DeadLetters(ctx context.Context, run string) ([]DeadLetter, error)
	// DeadLetter returns one dead letter with the message it is about, or
	// ErrNoDeadLetter.
	DeadLetter(ctx context.Context, run, id string) (DeadLetter, Message, error)
	// Redeliver sends the message of a dead letter back to its set of
	// consumers, where its deliveries count from 1 again; the dead letter is gone.
	// It returns ErrNoDeadLetter when there is none of that ID (any more).
	//
	// Once the group of a dead letter has ended it returns ErrGroupEnded: a step
	// was completed without the group, and a second end would contradict the
	// first.
	Redeliver(ctx context.Context, run, id string) error
}

// DeadLetter says who gave up on a message, when and why.
type DeadLetter struct {
	ID         string // names it within its run; see DeadLetterID
	Name       string // the set of consumers
	EventID    string // the message, with Type and Group
	Type       Type
	Group      string
	Round      int       // 1 for the first dead letter about the message, 2 for the one after its redelivery
	Deliveries int       // in this round
	Reason     string    // why, at most MaxReasonBytes
	Time       time.Time // when, by the clock of who gave up
}

const (
	// MaxDeadLetters bounds what DeadLetters returns.
	MaxDeadLetters = 10_000
	// MaxReasonBytes bounds the reason of a dead letter; the rest is cut off.
	MaxReasonBytes = 2 << 10
)

var (
	// ErrNoDeadLetter is returned for a dead letter that does not exist, or has
	// been redelivered.
	ErrNoDeadLetter = errors.New("no such dead letter")
	// ErrGroupEnded is returned for a redelivery into a group that has ended.
	ErrGroupEnded = errors.New("the group has ended")
)

// DeadLetterID returns the ID of the dead letter that a set makes in a round of
// a message: the three joined by dots, which none of them contains.
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
	return "", "", 0, fmt.Errorf("%w: %q is not of the form set.event.round", ErrNoDeadLetter, clip(id))
}

// ClipReason returns the reason as it is stored: valid UTF-8 of at most
// MaxReasonBytes.
func ClipReason(reason string) string {
	if len(reason) > MaxReasonBytes {
		reason = reason[:MaxReasonBytes]
	}
	return strings.ToValidUTF8(reason, "")
}
