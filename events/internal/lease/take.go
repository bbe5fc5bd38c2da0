package lease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"codea1/events"
	"codea1/events/internal/client"
)

// Record is the record of a register: the last state that an owner has stored.
type Record struct {
	Owner   string        `json:"owner"`
	Session string        `json:"session"` // random, one for each lease taken
	Since   time.Time     `json:"since"`
	TTL     time.Duration `json:"ttl_ns"`
	Closed  bool          `json:"closed,omitempty"` // given back by its owner
}

// Register stores one Record.
type Register interface {
	// Load returns the record and its revision, or revision 0 if there is none.
	// It may return an old record for a while.
	Load(ctx context.Context) (Record, uint64, error)
	// Swap replaces the record of a revision, 0 for none, and returns the new
	// revision. It returns ErrChanged if the present record has another
	// revision, also if that is this record, stored before without an answer.
	// After any other error the record may be replaced or not.
	Swap(ctx context.Context, revision uint64, record Record) (uint64, error)
}

// ErrChanged is returned by Register.Swap for an outdated revision.
var ErrChanged = errors.New("the record was replaced")

const (
	// A waiting client loads the record watchesPerTTL times in a TTL, and at
	// least every maxWatch.
	watchesPerTTL = 30
	maxWatch      = 250 * time.Millisecond
)

// Take takes the lease of a register with the semantics of events.Leases, and
// renews it until Close.
func Take(ctx context.Context, register Register, config events.LeaseConfig) (*Lease, error) {
	var token [8]byte
	_, _ = rand.Read(token[:])
	mine := Record{Owner: config.Owner, Session: hex.EncodeToString(token[:]), TTL: config.TTL}
	var (
		watched uint64    // revision that is watched
		since   time.Time // when it was first seen
		sent    time.Time // before mine was first sent
	)
	for {
		record, revision, err := register.Load(ctx)
		now, wait := time.Now(), min(max(record.TTL, events.MinLeaseTTL)/watchesPerTTL, maxWatch)
		switch {
		case err != nil:
			// During an outage owners cannot renew: watch again from the start.
			watched, wait = 0, maxWatch
		case record.Session == mine.Session: // the answer to Swap was lost
			return hold(register, config, mine, revision, sent), nil
		case revision == 0 || record.Closed || revision == watched && now.Sub(since) >= record.TTL:
			mine.Since = now.UTC()
			if sent.IsZero() {
				sent = now
			}
			revision, err = register.Swap(ctx, revision, mine)
			if err == nil {
				return hold(register, config, mine, revision, sent), nil
			}
			if errors.Is(err, ErrChanged) {
				sent, err = time.Time{}, nil
			}
		case revision != watched:
			if watched != 0 && !config.Wait {
				return nil, &events.LeasedError{Run: config.Run, Name: config.Name, Owner: record.Owner, Since: record.Since}
			}
			watched, since = revision, now
		}
		if err != nil && !errors.Is(err, client.ErrOutage) {
			return nil, err
		}
		if err := client.Pause(ctx, context.Background(), wait); err != nil {
			return nil, err
		}
	}
}
