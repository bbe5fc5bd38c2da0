package events

import (
	"context"
	"errors"
	"time"
)

// Bus carries messages between stages. It delivers every published message at
// least once and in publication order per group; what must happen once is made
// so by event IDs and by positions, never by acknowledgements.
//
// All methods are safe for concurrent use.
type Bus interface {
	// Publish stores messages durably, those of a group in order, and returns
	// once all are stored. A message whose ID is stored already is not stored
	// again, however long ago that was. When it fails, some messages may have
	// been stored: publish all of them again. Over MaxPayloadBytes it returns
	// ErrTooLarge and stores nothing. A bus that can tell returns ErrLineage for
	// a message whose type and group another event has taken.
	//
	// A bus keeps every event of a run: it never forgets one to make room. When
	// it has no room it returns ErrFull, and takes the message once somebody has
	// made some; until then the publisher waits and tries again, as in an outage.
	Publish(ctx context.Context, messages ...Message) error
	// Consume joins the competing consumers of config.Name: each message goes
	// to one of them at a time.
	Consume(ctx context.Context, config ConsumeConfig) (Consumer, error)
	// Read follows the messages of a run in one order, which is the same for
	// every reader of the same types and includes the order per group. For a
	// position that the bus does not reach, Read or the first Next returns
	// ErrPosition.
	Read(ctx context.Context, config ReadConfig) (Reader, error)
	// Lag reports how far the consumers of a name are behind.
	Lag(ctx context.Context, run, name string) (Lag, error)
	// Close ends all consumers and readers and releases the connection.
	Close() error
}

// ErrFull is returned by Publish when the bus has no room for a message.
var ErrFull = errors.New("the bus is full")

// Broker is a Bus together with what the owners of a run need beside it.
type Broker interface {
	Bus
	Leases
	DeadLetters
	// HasRun reports whether anything of a run was ever published, consumed or
	// read. Unlike those it leaves no trace of a name that is none.
	HasRun(ctx context.Context, run string) (bool, error)
}

// ConsumeConfig describes a set of competing consumers. Every member must use
// the same values.
type ConsumeConfig struct {
	Run         string
	Name        string        // the set of consumers, for example "execution"
	Types       []Type        // event types delivered
	AckWait     time.Duration // without an answer or Extend, a message is delivered again after this long
	MaxInFlight int           // unanswered messages of the whole set, at most
}

// Consumer hands out deliveries of one member.
type Consumer interface {
	// Fetch waits until at least one message is there and returns up to most,
	// waiting no longer than linger for more once the first has come. It
	// returns ctx.Err() when ctx ends and ErrClosed after Close.
	Fetch(ctx context.Context, most int, linger time.Duration) ([]Delivery, error)
	// Close leaves the set; unanswered deliveries go to other members once
	// AckWait is over.
	Close() error
}

// Delivery is one message with the right to answer it. Exactly one of Ack,
// Retry, Drop and DeadLetter must be called; Extend any number of times before.
type Delivery interface {
	Message() Message
	// Number counts the deliveries of this message, from 1.
	Number() int
	// Ack says that everything that follows from the message is published.
	// It may be lost, and the message delivered again.
	Ack(ctx context.Context) error
	// Retry asks for delivery again, no sooner than after.
	Retry(ctx context.Context, after time.Duration) error
	// Drop says that the message shall not be delivered again.
	Drop(ctx context.Context) error
	// DeadLetter stores a dead letter about the message and drops it; reason
	// says why it cannot be handled. Unlike the other answers it is confirmed:
	// the dead letter is stored when it returns. The message may all the same be
	// delivered again, as after Ack; a second dead letter of a round changes
	// nothing.
	DeadLetter(ctx context.Context, reason string) error
	// Extend restarts AckWait for a message that takes long.
	Extend(ctx context.Context) error
}

// Position is a place in a run's message order, owned by the reader: it is
// stored together with what was read up to it. It is opaque, and only
// meaningful to the kind of bus that gave it.
type Position string

// Start is the position before the first message.
const Start Position = ""

// ReadConfig describes an ordered reader.
type ReadConfig struct {
	Run   string
	Types []Type   // event types read; empty for all
	From  Position // read what comes after it
}

// Reader reads messages in order.
type Reader interface {
	// Next waits for the next message and returns it with the position after
	// it. It returns ctx.Err() when ctx ends and ErrClosed after Close.
	Next(ctx context.Context) (Message, Position, error)
	// Close ends the reader.
	Close() error
}

// Lag says how far a set of consumers is behind.
type Lag struct {
	Pending  int64 // not delivered yet
	InFlight int64 // delivered and not answered yet
}
