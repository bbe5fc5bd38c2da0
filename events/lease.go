package events

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Leases lets processes agree on the one replica of a stage. When an owner does
// not renew its lease for its TTL, another replica may take over.
//
// A lease prevents a second replica beside a living one. It does not make data
// correct: an operation that an owner began may end after another one has the
// lease, because a process can be stopped at any instruction. Correct data relies
// on the lock of the owner's store, on event IDs, and on positions that are
// committed together with their state.
type Leases interface {
	// Lease makes config.Owner the owner of config.Name. While another owner is
	// alive it returns a *LeasedError or, with config.Wait, waits.
	//
	// An owner is alive while it renews. This process observes the renewals by
	// its own clock, so clocks need not agree. Lease therefore takes up to a third
	// of the owner's TTL to find that it is alive, and a whole TTL to take over
	// from a dead one. It takes over a closed lease at once.
	Lease(ctx context.Context, config LeaseConfig) (Lease, error)
}

// Lease is owned from its creation. It renews itself until Close, also after
// outages of the bus.
type Lease interface {
	// Confirm returns nil when no other process can have the lease now. An owner
	// calls it before an effect that must happen once. When the last renewal is
	// older than the TTL, because the process was stopped or the bus is
	// unreachable, it waits for the next renewal. It returns ctx.Err() when ctx
	// ends first, ErrLeaseLost when another owner has the lease, and ErrClosed
	// after Close.
	Confirm(ctx context.Context) error
	// Lost is closed when another owner has the lease, and by Close.
	Lost() <-chan struct{}
	// Close ends the lease. A waiting process takes over at once.
	Close() error
}

// LeaseConfig names a lease and its owner.
type LeaseConfig struct {
	Run   string
	Name  string        // the stage, for example StageTrainerCode
	Owner string        // host and process, for error messages
	TTL   time.Duration // time without a renewal after which another owner may take over; at least MinLeaseTTL
	Wait  bool          // wait until the present owner ends
}

// MinLeaseTTL is the shortest TTL. The time between renewals, a third of it, must
// be much longer than one request to the bus.
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
	// ErrLeased is matched by every *LeasedError.
	ErrLeased = errors.New("lease is held by another owner")
	// ErrLeaseLost is returned by Confirm when another owner has the lease.
	ErrLeaseLost = errors.New("lease was lost to another owner")
)

// LeasedError names the living owner of a lease.
type LeasedError struct {
	Run   string
	Name  string
	Owner string
	Since time.Time // when it became the owner, by its clock
}

func (e *LeasedError) Error() string {
	return fmt.Sprintf("%s of run %s is owned by %s since %s: stop that process first, or wait for its end",
		e.Name, e.Run, e.Owner, e.Since.UTC().Format(time.RFC3339))
}

// Is reports true for ErrLeased.
func (e *LeasedError) Is(target error) bool { return target == ErrLeased }
