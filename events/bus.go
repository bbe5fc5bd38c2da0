package events

import (
	"context"
	"errors"
	"time"
)

// Bus carries messages between stages. It delivers every published message at
// least once, and the messages of a group in the order of publication. Effects
// that must happen once rely on event IDs and positions, never on
// acknowledgements.
//
// During an outage of the bus every method but the answers to a delivery waits,
// however long it takes, and goes on when the outage has ended or returns
// ctx.Err(). The bus logs the begin and the end of an outage once each.
//
// All methods are safe for concurrent use.
type Bus interface {
	// Publish stores messages durably, the messages of a group in order, and
	// returns when all are stored. It never stores a second message of the same
	// ID. When it fails, some messages may be stored: publish all of them again.
	// For a payload over MaxPayloadBytes it returns ErrTooLarge and stores
	// nothing.
	//
	// A run has one event for a type and a group. Anyone can compute its ID and
	// store a message under its name before. The first message of a name that
	// Message.Admit accepts is the event; it never changes. Messages before it are
	// no events and do not keep it out: it is stored beside them. When the bus has
	// another event, Publish stores the other messages and returns a
	// *ForeignEventError for another payload under the ID, and ErrLineage for
	// another ID.
	//
	// A bus keeps every event of a run and never removes one to make room. When
	// it is full, Publish logs that and waits, as in an outage.
	Publish(ctx context.Context, messages ...Message) error
	// Consume joins the worker set config.Name: the bus delivers each message to
	// one of its members at a time.
	Consume(ctx context.Context, config ConsumeConfig) (Consumer, error)
	// Read follows the messages of a run in one order: the same for every reader
	// of the same types, and within a group the order of publication. For a
	// position past the end of the bus, Read or the first Next returns
	// ErrPosition.
	Read(ctx context.Context, config ReadConfig) (Reader, error)
	// Lag reports how many messages a worker set has not answered.
	Lag(ctx context.Context, run, name string) (Lag, error)
	// Close ends all consumers and readers and releases the connection.
	Close() error
}

// ErrFull is returned by Delivery.DeadLetter when the bus has no room for it.
var ErrFull = errors.New("the bus is full")

// Broker is a Bus with the leases and dead letters of its runs.
type Broker interface {
	Bus
	Leases
	DeadLetters
	// HasRun reports whether a message of the run was ever published, consumed or
	// read. It does not create the run.
	HasRun(ctx context.Context, run string) (bool, error)
}

// ConsumeConfig describes a worker set. Every member must use the same values.
type ConsumeConfig struct {
	Run         string
	Name        string        // the worker set, for example StageExecution
	Types       []Type        // event types delivered
	AckWait     time.Duration // a message without an answer or Extend is delivered again after this time
	MaxInFlight int           // limit on the unanswered messages of the whole worker set
}

// Consumer is one member of a worker set.
type Consumer interface {
	// Fetch waits for a first delivery, then up to linger for more, and returns
	// at most most of them. It returns ctx.Err() when ctx ends and ErrClosed
	// after Close.
	Fetch(ctx context.Context, most int, linger time.Duration) ([]Delivery, error)
	// Close leaves the worker set. The bus delivers unanswered messages to other
	// members after AckWait.
	Close() error
}

// Delivery is one message with the right to answer it. Exactly one of Ack,
// Retry and DeadLetter must be called; Extend any number of times before.
type Delivery interface {
	Message() Message
	// Number counts the deliveries of this message, from 1.
	Number() int
	// Ack tells the bus that every event that follows from the message is
	// published. An Ack may be lost; then the message is delivered again.
	Ack(ctx context.Context) error
	// Retry asks for another delivery after the given time or later.
	Retry(ctx context.Context, after time.Duration) error
	// DeadLetter stores a dead letter with the reason and drops the message.
	// Unlike the other answers it is confirmed: the dead letter is stored when it
	// returns. The message may still be delivered again, as after Ack; a second
	// dead letter of the same round changes nothing.
	DeadLetter(ctx context.Context, reason string) error
	// Extend restarts AckWait.
	Extend(ctx context.Context) error
}

// Position is where a reader is in a run's message order. The reader owns it and
// stores it together with the state that it has read up to there. It is opaque,
// and valid only for the kind of bus that returned it.
type Position string

// Start is the position before the first message.
const Start Position = ""

// ReadConfig describes an ordered reader.
type ReadConfig struct {
	Run   string
	Types []Type   // event types read; empty for all
	From  Position // read the messages after it
	New   bool     // read the messages that are published after the call of Read; From is ignored
	// Malformed makes Next return messages that are no events, as a
	// *MalformedError with the position after them. Otherwise the reader logs and
	// skips them.
	Malformed bool
}

// Reader reads messages in order.
type Reader interface {
	// Next waits for the next message and returns it with the position after
	// it. It returns ctx.Err() when ctx ends and ErrClosed after Close. After a
	// *MalformedError it can be called again.
	Next(ctx context.Context) (Message, Position, error)
	// Close ends the reader.
	Close() error
}

// Lagging is a Reader that knows its lag.
type Lagging interface {
	// Behind returns how many messages followed the last one that Next returned, at
	// that moment. Messages of types that are not read may count. It can be called
	// beside Next.
	Behind() int64
}

// Lag counts the messages that a worker set has not answered.
type Lag struct {
	Pending  int64 // not delivered yet
	InFlight int64 // delivered and not answered yet
}
