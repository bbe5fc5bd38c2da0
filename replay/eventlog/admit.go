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

// outcome is the decision about a message of a batch.
type outcome int

const (
	admitted    outcome = iota // it gets the next sequence number
	duplicate                  // it is in the log
	replaced                   // another payload stands under its ID
	refused                    // it descends from a payload that does not stand
	quarantined                // it is no event of the run
)

// candidate is a message of a batch.
type candidate struct {
	in       *Incoming
	id       eventID
	payload  Hash                  // of the payload before compression, and before compaction
	bare     *Hash                 // of the payload without tokens
	decoded  events.Payload        // of the types that package state reads; nil if it cannot be read
	rewarded *events.GroupRewarded // changes the Mistake Book, or nil

	outcome  outcome
	standing eventID // if replaced or refused: the standing event
	value    []byte  // record; link adds the chain hash
	chained  int     // length of the part of the record that the chain covers
	seq      uint64  // if admitted
	chain    Hash

	quarantined *Quarantined
	counted     Quarantine // after it
}

// batch holds the messages of one append.
type batch struct {
	candidates []candidate
	records    *[]byte     // memory of the candidates' records
	txn        *badger.Txn // holds the records; nil if they are over its limit
}

// recordMemory is reused: Badger copies the records.
var recordMemory = sync.Pool{New: func() any { return new([]byte) }}

// recordMemoryBytes is the most memory that is kept for the next batch.
const recordMemoryBytes = 16 << 20

// takeTxn returns the batch's transaction once, then nil.
func (b *batch) takeTxn() *badger.Txn {
	txn := b.txn
	b.txn = nil
	return txn
}

// free releases the batch. No pointer to its records may be left.
func (b *batch) free() {
	if txn := b.takeTxn(); txn != nil {
		txn.Discard()
	}
	if cap(*b.records) <= recordMemoryBytes {
		recordMemory.Put(b.records)
	}
}

// prepare reads and hashes the payloads and encodes the records, on all cores.
// It needs nothing of the log.
func prepare(ctx context.Context, incoming []Incoming) (*batch, error) {
	b := &batch{candidates: make([]candidate, len(incoming)), records: recordMemory.Get().(*[]byte)}
	starts := make([]int, len(incoming)+1)
	for i := range incoming {
		starts[i+1] = starts[i] + recordRoom(&incoming[i].Message)
	}
	size := starts[len(incoming)]
	*b.records = slices.Grow((*b.records)[:0], size)
	memory := (*b.records)[:size]
	// Goroutines take messages one by one: one of the cores also commits the
	// batch before.
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), len(incoming)) {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < int64(len(incoming)); i = next.Add(1) - 1 {
				if err := ctx.Err(); err != nil {
					return err
				}
				c := &b.candidates[i]
				c.in = &incoming[i]
				if err := c.read(); err != nil {
					return err
				}
				if c.outcome != quarantined {
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

// read sets the fields that follow from the message alone. An error means that
// this build must not continue.
func (c *candidate) read() error {
	m := &c.in.Message
	if c.in.from != nil {
		return c.readRecorded()
	}
	if c.in.Malformed != nil {
		c.quarantine(nil)
		return nil
	}
	e, err := m.AdmitRaw(c.hash)
	if err != nil {
		c.quarantine(err)
		return nil
	}
	c.id = parseID(m.ID)
	if state.ReadsPayload(m.Type) {
		c.decoded = e.Payload
		c.rewarded, _ = e.Payload.(*events.GroupRewarded)
	}
	return nil
}

// readRecorded is read for the record of another log, which may have an event that
// this build would quarantine.
func (c *candidate) readRecorded() error {
	m := &c.in.Message
	if err := m.Validate(); err != nil {
		return fmt.Errorf("event %q: %w", m.ID, err)
	}
	c.id = parseID(m.ID)
	if state.ReadsPayload(m.Type) {
		payload, err := m.Payload()
		if errors.Is(err, events.ErrNewerSchema) {
			return err // without it book and state would be wrong
		}
		if err == nil {
			c.decoded = payload
			c.rewarded, _ = payload.(*events.GroupRewarded)
		}
	}
	if err := m.WithRaw(c.hash); err != nil {
		c.quarantine(err) // the chain hash of the new log then differs
	}
	return nil
}

// hash sets the hashes of the payload.
func (c *candidate) hash(raw []byte, hash func() string) error {
	c.payload = parseHash(hash())
	if from := c.in.from; from != nil && from.Compacted {
		bare := bareHash(from.Tokens, c.payload)
		c.payload, c.bare = from.PayloadHash, &bare
	} else if hasTokens(c.in.Message.Type) {
		if bare, ok := hashWithoutTokens(raw); ok {
			c.bare = &bare
		}
	}
	return nil
}

// record returns the record of a candidate, without its sequence number.
func (c *candidate) record() *Record {
	r := &Record{Message: c.in.Message, PayloadHash: c.payload, bare: c.bare}
	if from := c.in.from; from != nil {
		r.Compacted, r.Tokens = from.Compacted, from.Tokens
	}
	return r
}

// tail is the end of the log, including the batch that is being committed.
type tail struct {
	seq        uint64 // last event, with its chain hash
	chain      Hash
	course     events.Course
	quarantine Quarantine
	events     map[eventID]known   // of the batch being committed
	refused    map[refusal]eventID // likewise
}

// admission decides about the messages of a batch, one by one. It knows the log,
// the batch that is being committed, and its own decisions.
type admission struct {
	log    *Log
	view   view // holds at least the events before the batch that is being committed
	before *tail
	tail
}

// admit decides about a batch and writes it into its transaction. It returns the
// tail for the next batch. The caller holds l.admitting.
func (l *Log) admit(b *batch) (tail, error) {
	// A transaction that begins now would wait for the commit in progress.
	b.txn = l.ahead.Swap(nil)
	if b.txn == nil {
		b.txn = l.db.NewTransaction(true)
	}
	a := admission{log: l, view: view{l, b.txn}, before: &l.tail, tail: tail{
		seq: l.tail.seq, chain: l.tail.chain, course: l.tail.course.Clone(), quarantine: l.tail.quarantine,
		events: make(map[eventID]known, len(b.candidates)), refused: make(map[refusal]eventID),
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
	if c.outcome == quarantined {
		return a.quarantine.number(c, a.seq)
	}
	k, ok, err := a.find(c.id)
	switch {
	case err != nil:
		return err
	case ok && k.payload == c.payload:
		c.outcome = duplicate
		return nil
	case ok:
		c.outcome, c.standing = replaced, c.id
		return nil
	}
	standing, fate, err := a.causeStands(&c.in.Message)
	if err != nil {
		return err
	}
	if fate == refused {
		c.outcome, c.standing = refused, standing
		a.refused[refusal{c.id, c.payload}] = standing
		a.log.refuses = true
		return nil
	}
	if c.in.from == nil {
		err := a.course.Check(c.decoded)
		if fate == quarantined {
			err = fmt.Errorf("its cause %s is not in the log before it", c.in.Message.CausationID)
		}
		if err != nil {
			c.quarantine(err)
			return a.quarantine.number(c, a.seq)
		}
	}
	c.seq = a.seq + 1
	c.chain = link(a.chain, c.seq, c.value, c.chained)
	a.seq, a.chain = c.seq, c.chain
	a.course.Apply(c.decoded)
	a.events[c.id] = known{c.seq, c.payload}
	a.log.filter.add(c.id)
	return nil
}

// causeStands judges a message by its cause: it is admitted if
// it has no cause, or the log has the cause with the same payload; quarantined if
// the log does not know the cause; and refused otherwise, with the standing event.
func (a *admission) causeStands(m *events.Message) (standing eventID, fate outcome, err error) {
	if m.CausationID == "" {
		return eventID{}, admitted, nil
	}
	cause := refusal{parseID(m.CausationID), parseHash(m.CausationHash)}
	k, ok, err := a.find(cause.id)
	if err != nil {
		return eventID{}, refused, err
	}
	if ok && k.payload == cause.payload {
		return eventID{}, admitted, nil
	}
	// A refused cause has the event for which it was refused. A cause with
	// another payload is that event itself.
	standing, wasRefused, err := a.findRefused(cause)
	if err != nil || wasRefused {
		return standing, refused, err
	}
	if ok {
		return cause.id, refused, nil
	}
	return eventID{}, quarantined, nil
}

func (a *admission) find(id eventID) (known, bool, error) {
	if a.log.filter.excludes(id) {
		return known{}, false, nil
	}
	if k, ok := a.events[id]; ok {
		return k, true, nil
	}
	if k, ok := a.before.events[id]; ok {
		return k, true, nil
	}
	if k, ok := a.log.recent.find(id); ok {
		return k, true, nil
	}
	seq, err := a.view.lookup(id)
	if err != nil || seq == 0 {
		return known{}, false, err
	}
	r, err := a.view.recordOf(id, seq)
	return known{seq, r.PayloadHash}, err == nil, err
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
	raw, err := a.view.get(refusedKey(r))
	if err != nil {
		return eventID{}, false, a.log.corrupt(0, "refusal of "+r.id.String()+" cannot be read", err)
	}
	var standing eventID
	copy(standing[:], raw)
	return standing, raw != nil, nil
}
