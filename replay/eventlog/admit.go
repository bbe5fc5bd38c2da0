package eventlog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/replay/state"
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
	value    []byte  // its record, with its chain hash once it is admitted
	chained  int     // how much of the record the chain covers
	seq      uint64  // of one admitted
	chain    Hash
}

// batch is what is appended at once.
type batch struct {
	candidates []candidate
	records    *[]byte     // memory that the candidates' records lie in
	txn        *badger.Txn // has the candidates written; nil where they do not fit
}

// recordMemory is what records are laid out in until Badger has them.
var recordMemory = sync.Pool{New: func() any { return new([]byte) }}

// recordMemoryBytes is the most that is kept for the next batch.
const recordMemoryBytes = 16 << 20

// takeTxn returns the batch's transaction, once.
func (b *batch) takeTxn() *badger.Txn {
	txn := b.txn
	b.txn = nil
	return txn
}

// free gives back what the batch holds. Nothing may point to its records any
// more.
func (b *batch) free() {
	if txn := b.takeTxn(); txn != nil {
		txn.Discard()
	}
	if cap(*b.records) <= recordMemoryBytes {
		recordMemory.Put(b.records)
	}
}

// prepare reads and hashes the payloads and lays out the records, on all
// cores. It needs nothing of the log.
func prepare(ctx context.Context, entries []Entry) (*batch, error) {
	b := &batch{candidates: make([]candidate, len(entries)), records: recordMemory.Get().(*[]byte)}
	starts := make([]int, len(entries)+1)
	for i := range entries {
		starts[i+1] = starts[i] + recordRoom(&entries[i].Message)
	}
	size := starts[len(entries)]
	*b.records = slices.Grow((*b.records)[:0], size)
	memory := (*b.records)[:size]
	// Who has a core to itself does more: one is shared with the commit before.
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), len(entries)) {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < int64(len(entries)); i = next.Add(1) - 1 {
				if err := ctx.Err(); err != nil {
					return err
				}
				c := &b.candidates[i]
				c.entry = &entries[i]
				if err := c.read(); err != nil {
					return err
				}
				if c.outcome != rejected {
					c.value, c.chained = layOut(memory[starts[i]:starts[i]:starts[i+1]], c.record())
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.free()
		return nil, err
	}
	return b, nil
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
	if err := m.WithRaw(c.hash); err != nil {
		c.outcome, c.err = rejected, err
	}
	return nil
}

// hash fills in what the payload hashes to.
func (c *candidate) hash(raw []byte, hash func() string) error {
	c.payload = parseHash(hash())
	if from := c.entry.from; from != nil && from.Compacted {
		bare := bareHash(from.Tokens, c.payload)
		c.payload, c.bare = from.PayloadHash, &bare
	} else if hasTokens(c.entry.Message.Type) {
		if bare, ok := hashWithoutTokens(raw); ok {
			c.bare = &bare
		}
	}
	return nil
}

// record returns the record of a message, but for its place.
func (c *candidate) record() *Record {
	r := &Record{Message: c.entry.Message, PayloadHash: c.payload, bare: c.bare}
	if from := c.entry.from; from != nil {
		r.Compacted, r.Tokens = from.Compacted, from.Tokens
	}
	return r
}

// tail is what a batch stands behind: all that is on disk, and the batch that is
// on its way there.
type tail struct {
	seq     uint64 // of the last event, with its chain hash
	chain   Hash
	placed  map[eventID]place   // by the batch on its way
	refused map[refusal]eventID // likewise
}

// admission decides, message by message, what becomes of a batch. It sees the
// log as it is, the batch on its way, and what it has decided before.
type admission struct {
	log    *Log
	txn    *badger.Txn // shows at least what was on disk before the batch on its way
	before *tail
	tail
}

// admit decides what becomes of a batch and writes it into its transaction, and
// returns what the next one stands behind once this one is on its way. The
// caller holds l.admitting.
func (l *Log) admit(b *batch) (tail, error) {
	// A transaction begun now would wait for the batch on its way.
	b.txn = l.ahead.Swap(nil)
	if b.txn == nil {
		b.txn = l.db.NewTransaction(true)
	}
	a := admission{log: l, txn: b.txn, before: &l.tail, tail: tail{
		seq: l.tail.seq, chain: l.tail.chain,
		placed: make(map[eventID]place, len(b.candidates)), refused: make(map[refusal]eventID),
	}}
	for i := range b.candidates {
		if err := a.decide(&b.candidates[i]); err != nil {
			return tail{}, err
		}
	}
	err := write(b.txn, b.candidates)
	if errors.Is(err, badger.ErrTxnTooBig) {
		b.takeTxn().Discard()
		err = nil
	}
	return a.tail, err
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
		a.log.refuses = true
		return nil
	}
	c.seq = a.seq + 1
	c.chain = link(a.chain, c.seq, c.value, c.chained)
	a.seq, a.chain = c.seq, c.chain
	a.placed[c.id] = place{c.seq, c.payload}
	a.log.seen.add(c.id)
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
	if a.log.seen.rulesOut(id) {
		return place{}, false, nil
	}
	if at, ok := a.placed[id]; ok {
		return at, true, nil
	}
	if at, ok := a.before.placed[id]; ok {
		return at, true, nil
	}
	if at, ok := a.log.recent.find(id); ok {
		return at, true, nil
	}
	seq, err := a.log.lookupStored(a.txn, id)
	if err != nil || seq == 0 {
		return place{}, false, err
	}
	r, err := a.log.recordOf(a.txn, id, seq)
	return place{seq, r.PayloadHash}, err == nil, err
}

func (a *admission) findRefused(r refusal) (eventID, bool, error) {
	if !a.log.refuses {
		return eventID{}, false, nil
	}
	if standing, ok := a.refused[r]; ok {
		return standing, true, nil
	}
	if standing, ok := a.before.refused[r]; ok {
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
