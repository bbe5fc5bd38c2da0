package events

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Leases lets processes agree on who owns something of a run: its log, a
// trainer. An owner that is not heard of for its TTL may be replaced.
//
// A lease keeps a second owner from starting beside a living one. It does not
// make data correct: what an owner began while it held the lease may end after
// another has it, for a process can be stopped at any instruction. That is for
// the lock of the owner's own store, for event IDs, and for positions that are
// committed with what they are positions of.
type Leases interface {
	// Lease makes config.Owner the owner of config.Name. While another owner
	// lives it returns a *LeasedError or, with config.Wait, waits for its end.
	//
	// An owner lives as long as it renews: whether it does is watched from here,
	// by this clock, so clocks need not agree. Lease therefore takes up to a
	// third of the present owner's TTL to say that it lives, and a whole TTL to
	// take over from one that has died. From one that has closed its lease it
	// takes over at once.
	Lease(ctx context.Context, config LeaseConfig) (Lease, error)
}

// Lease is owned from the moment it is made. It renews itself, through outages
// of the bus, until Close.
type Lease interface {
	// Confirm returns nil when nobody else can have the lease at this moment. An
	// owner calls it before an effect that only one may have. Should the last
	// renewal be older than the TTL, because the process was stopped or the bus
	// is away, it waits for the next; it returns ctx.Err() when ctx ends first,
	// ErrLeaseLost when another owner has come, and ErrClosed after Close.
	Confirm(ctx context.Context) error
	// Lost is closed when another owner has come, and by Close.
	Lost() <-chan struct{}
	// Close gives the lease back. Who waits for it takes over at once.
	Close() error
}

// LeaseConfig says what is to be owned and by whom.
type LeaseConfig struct {
	Run   string
	Name  string        // what is owned, for example "log"
	Owner string        // who asks, for people to read: host and process
	TTL   time.Duration // without a renewal for this long another may take over; MinLeaseTTL at least
	Wait  bool          // wait for the end of a present owner
}

// MinLeaseTTL is the shortest TTL: a third of it, the time between renewals,
// must be much longer than a request to the bus takes.
const MinLeaseTTL = 100 * time.Millisecond

// Validate checks every field; the error names it.
func (c *LeaseConfig) Validate() error {
	if err := checkToken("run", c.Run); err != nil {
		return err
	}
	if err := checkToken("name", c.Name); err != nil {
		return err
	}
	if c.Owner == "" || len(c.Owner) > MaxTokenBytes {
		return invalid("owner", "want 1 to %d bytes, have %d", MaxTokenBytes, len(c.Owner))
	}
	if c.TTL < MinLeaseTTL {
		return invalid("ttl", "%v is less than %v", c.TTL, MinLeaseTTL)
	}
	return nil
}

var (
	// ErrLeased is what a *LeasedError is.
	ErrLeased = errors.New("lease is held by another owner")
	// ErrLeaseLost is returned by Confirm once another owner has come.
	ErrLeaseLost = errors.New("lease was lost to another owner")
)

// LeasedError names the living owner of a lease.
type LeasedError struct {
	Run   string
	Name  string
	Owner string
	Since time.Time // when it became the owner, by its own clock
}

func (e *LeasedError) Error() string {
	return fmt.Sprintf("%s of run %s is owned by %s since %s: end it first, or wait for its end",
		e.Name, e.Run, e.Owner, e.Since.UTC().Format(time.RFC3339))
}

// Is makes a *LeasedError an ErrLeased.
func (e *LeasedError) Is(target error) bool { return target == ErrLeased }
