package replay

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"codea1/events"
	"codea1/replay/state"
	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sync/errgroup"
)

// outcome is what becomes of a message that is to be appended.
type outcome int

const (
	admitted  outcome = iota // it gets the next sequence number
	duplicate                // it is in the log
	replaced                 // another payload stands under its ID
	refused                  // it descends from a payload that does not stand
	rejected                 // its payload cannot be read
)

// candidate is a message on its way into the log.
type candidate struct {
	entry    *Entry
	id       eventID
	payload  Hash                  // of the payload before compression, and before compaction
	bare     *Hash                 // what the payload will hash to once it is compacted
	decoded  events.Payload        // of the types that state reads; nil if nobody can
	rewarded *events.GroupRewarded // what the Mistake Book applies, or nil
	err      error                 // why it is rejected

	outcome  outcome
	standing eventID // of one replaced or refused: the event that stands
	seq      uint64  // of one admitted, with its record and chain hash
	value    []byte
	chain    Hash
}

// prepare reads and hashes the payloads, on all cores: with large payloads
// that takes longer than the commit.
func prepare(ctx context.Context, entries []Entry) ([]candidate, error) {
	candidates := make([]candidate, len(entries))
	workers := min(runtime.GOMAXPROCS(0), len(entries))
	group, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			for i := w; i < len(entries); i += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				candidates[i].entry = &entries[i]
				if err := candidates[i].read(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return candidates, group.Wait()
}

// read fills in what follows from the message alone. A payload nobody can read
// is noted in c.err; an error means that this build must not go on.
func (c *candidate) read() error {
	m := &c.entry.Message
	if err := m.Validate(); err != nil {
		return fmt.Errorf("event %q: %w", m.ID, err)
	}
	c.id = parseID(m.ID)
	if state.ReadsPayload(m.Type) {
		e, err := m.Decode()
		switch {
		case errors.Is(err, events.ErrNewerSchema):
			return err // skipping it would make a book and a state that lack it
		case err == nil:
			c.payload, c.decoded = parseHash(e.Hash()), e.Payload
			c.rewarded, _ = e.Payload.(*events.GroupRewarded)
			return nil
		case m.Type == events.TypeGroupRewarded:
			c.outcome, c.err = rejected, err
			return nil
		}
	}
	raw, err := m.Raw()
	if err != nil {
		c.outcome, c.err = rejected, err
		return nil
	}
	c.payload = hashOf(raw)
	if from := c.entry.from; from != nil && from.Compacted {
		bare := bareHash(from.Tokens, c.payload)
		c.payload, c.bare = from.PayloadHash, &bare
	} else if hasTokens(m.Type) {
		if bare, ok := hashWithoutTokens(raw); ok {
			c.bare = &bare
		}
	}
	return nil
}

// record returns the record of an admitted message. One that comes from
// another log keeps its version, and so its chain hash.
func (c *candidate) record() *Record {
	r := &Record{Seq: c.seq, Message: c.entry.Message, PayloadHash: c.payload, version: recordHashed, bare: c.bare}
	if from := c.entry.from; from != nil {
		r.version, r.Compacted, r.Tokens = from.version, from.Compacted, from.Tokens
	}
	return r
}

// admission decides, message by message, what becomes of a batch. It sees the
// log as it is and what it has decided before.
type admission struct {
	log     *Log
	txn     *badger.Txn
	head    head
	placed  map[eventID]place
	refused map[refusal]eventID
}

func (l *Log) admit(candidates []candidate) error {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	a := admission{
		log: l, txn: txn, head: l.head,
		placed: make(map[eventID]place, len(candidates)), refused: make(map[refusal]eventID),
	}
	for i := range candidates {
		if err := a.decide(&candidates[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *admission) decide(c *candidate) error {
	if c.outcome == rejected {
		return nil
	}
	at, ok, err := a.find(c.id)
	switch {
	case err != nil:
		return err
	case ok && at.payload == c.payload:
		c.outcome = duplicate
		return nil
	case ok:
		c.outcome, c.standing = replaced, c.id
		return nil
	}
	m := &c.entry.Message
	standing, stands, err := a.causeStands(m)
	if err != nil {
		return err
	}
	if !stands {
		c.outcome, c.standing = refused, standing
		a.refused[refusal{c.id, c.payload}] = standing
		return nil
	}
	c.seq = a.head.seq + 1
	c.value, c.chain = encodeRecord(a.head.chain, c.record())
	a.head.seq, a.head.chain = c.seq, c.chain
	a.placed[c.id] = place{c.seq, c.payload}
	return nil
}

// causeStands reports whether a message may enter as far as its cause goes: it
// has none, the log has it under the same payload hash, or the log has never
// met it. Otherwise it returns the event that stands where the lineages part.
func (a *admission) causeStands(m *events.Message) (standing eventID, stands bool, err error) {
	if m.CausationID == "" {
		return eventID{}, true, nil
	}
	cause := refusal{parseID(m.CausationID), parseHash(m.CausationHash)}
	at, ok, err := a.find(cause.id)
	if err != nil {
		return eventID{}, false, err
	}
	if ok && at.payload == cause.payload {
		return eventID{}, true, nil
	}
	// A cause that was refused leads to where its own lineage parted, however
	// long the chain; a cause that lost to another payload is itself the place.
	standing, wasRefused, err := a.findRefused(cause)
	if err != nil {
		return eventID{}, false, err
	}
	if wasRefused {
		return standing, false, nil
	}
	return cause.id, !ok, nil
}

func (a *admission) find(id eventID) (place, bool, error) {
	if at, ok := a.placed[id]; ok {
		return at, true, nil
	}
	return a.log.lookup(a.txn, id)
}

func (a *admission) findRefused(r refusal) (eventID, bool, error) {
	if standing, ok := a.refused[r]; ok {
		return standing, true, nil
	}
	raw, err := get(a.txn, refusedKey(r))
	if err != nil {
		return eventID{}, false, a.log.corrupt(0, "refusal of "+r.id.String()+" cannot be read", err)
	}
	var standing eventID
	copy(standing[:], raw)
	return standing, raw != nil, nil
}
