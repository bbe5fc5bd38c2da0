package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
	"codea1/replay/mistakes"
	"codea1/replay/state"
)

// Report describes a log without damage.
type Report struct {
	Events  uint64                 `json:"events"`
	Chain   Hash                   `json:"chain"` // of the last event
	ByType  map[events.Type]uint64 `json:"by_type"`
	Refused uint64                 `json:"refused"` // messages left out because they descend from a payload that does not stand
	// Quarantine counts the messages that are no events of the run.
	Quarantine Quarantine `json:"quarantine"`
	Compacted  uint64     `json:"compacted"` // payloads without token ids and log-probs
	Tests      int        `json:"tests"`     // in the Mistake Book
	Problems   int        `json:"problems"`  // that have tests there
}

// Verify reads the whole log. It checks that the sequence numbers have no gap,
// that every record links to the one before it, that every payload is the one
// that was appended, that every event occurs once, and that the stored Mistake
// Book and state follow from the events. The first damage is returned as a
// *CorruptError. progress, unless nil, is called with the number of events done.
// A log that is being written is checked as of the call.
func (l *Log) Verify(ctx context.Context, progress func(done uint64)) (Report, error) {
	v, closeView, err := l.view()
	if err != nil {
		return Report{}, err
	}
	defer closeView()
	c := verifier{view: v, book: mistakes.New(), state: state.New(), report: Report{ByType: make(map[events.Type]uint64)}}
	if err := c.verify(ctx, progress); err != nil {
		return Report{}, err
	}
	return c.report, nil
}

type verifier struct {
	view
	book    *mistakes.Book
	changes uint64 // events that change the book
	index   *indexCheck
	report  Report

	state    *state.State
	stored   []byte // stored state, if it matches the log
	storedAt uint64 // its last event
}

func (c *verifier) verify(ctx context.Context, progress func(done uint64)) error {
	end, err := c.head()
	if err != nil {
		return err
	}
	if c.index, err = c.newIndexCheck(end.seq); err != nil {
		return err
	}
	if stored, at, err := c.view.state(); err == nil { // the next writer replaces any other
		c.stored, c.storedAt = stored.Encode(), at
	}
	err = c.read(ctx, ReadOptions{}, func(item *badger.Item) (bool, error) {
		if err := c.check(item); err != nil {
			return false, err
		}
		if progress != nil {
			progress(c.report.Events)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if c.report.Events != end.seq {
		return c.log.corrupt(c.report.Events+1, fmt.Sprintf("%d events, but the head says %d", c.report.Events, end.seq), nil)
	}
	if c.report.Chain != end.chain {
		return c.log.corrupt(end.seq, "chain hash is not that of the head", nil)
	}
	compacted, err := c.compaction()
	if err != nil {
		return err
	}
	if c.report.Compacted != compacted.events {
		return c.log.corrupt(0, fmt.Sprintf("%d payloads are without tokens, %d have been compacted", c.report.Compacted, compacted.events), nil)
	}
	if err := c.index.finish(ctx); err != nil {
		return err
	}
	if err := c.checkKeys(ctx); err != nil {
		return err
	}
	if err := c.checkQuarantine(ctx); err != nil {
		return err
	}
	return c.checkBook(end.seq)
}

// check checks one event.
func (c *verifier) check(item *badger.Item) error {
	r, value, err := c.record(item)
	if err != nil {
		return err
	}
	fail := func(reason string, err error) error {
		return &CorruptError{Dir: c.log.dir, Seq: r.Seq, EventID: r.Message.ID, Reason: reason, Err: err}
	}
	if chainOf(c.report.Chain, r.Seq, value[:r.chainEnd]) != r.Chain {
		return fail("hash chain breaks", nil)
	}
	if err := r.Message.Validate(); err != nil {
		return fail("envelope", err)
	}
	raw, err := r.Message.Raw()
	if err != nil {
		return fail("payload", err)
	}
	if err := r.checkHash(hashOf(raw)); err != nil {
		return fail("payload", err)
	}
	if first, twice := c.index.add(indexEntry{parseID(r.Message.ID), r.Seq}); twice {
		return fail(fmt.Sprintf("its id is that of event %d", first), nil)
	}
	if err := c.apply(&r); err != nil {
		return fail("payload", err)
	}
	if r.Seq == c.storedAt && !bytes.Equal(c.stored, c.state.Encode()) {
		return fail("the state stored here does not follow from the events", nil)
	}
	if r.Compacted {
		c.report.Compacted++
	}
	c.report.Events++
	c.report.Chain = r.Chain
	c.report.ByType[r.Message.Type]++
	return nil
}

// apply applies an event to book and state, and compares it with the changes of
// the book that are stored for it.
func (c *verifier) apply(r *Record) error {
	x := state.Event{Seq: r.Seq, Type: r.Message.Type, Group: r.Message.Group}
	if state.ReadsPayload(x.Type) {
		e, err := r.Decode()
		switch {
		case err == nil:
			x.Payload = e.Payload
		case x.Type == events.TypeGroupRewarded || errors.Is(err, events.ErrNewerSchema):
			return err
		}
	}
	if rewarded, ok := x.Payload.(*events.GroupRewarded); ok {
		x.Changes = c.book.Apply(rewarded)
		if changesBook(rewarded) {
			c.changes++
			kept, err := c.get(deltaKey(r.Seq))
			if err != nil || !bytes.Equal(kept, encodeDeltas(rewarded)) {
				return errors.Join(errDeltas, err)
			}
		}
	}
	c.state.Apply(&x)
	return nil
}

var errDeltas = errors.New("the stored changes of the mistake book are not the event's")

// checkKeys compares the number of stored changes with that of events that
// change the book, and counts the refusals.
func (c *verifier) checkKeys(ctx context.Context) error {
	changes, err := c.count(ctx, spaceDeltas)
	if err != nil {
		return err
	}
	if changes != c.changes {
		return c.log.corrupt(0, fmt.Sprintf("changes of the mistake book are stored for %d events, %d have some", changes, c.changes), nil)
	}
	c.report.Refused, err = c.count(ctx, spaceRefused)
	return err
}

// count returns the number of keys in a space.
func (v view) count(ctx context.Context, space byte) (n uint64, err error) {
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if n%64 == 0 && ctx.Err() != nil {
			return n, ctx.Err()
		}
		n++
	}
	return n, nil
}

func (c *verifier) checkBook(seq uint64) error {
	c.report.Tests, c.report.Problems = c.book.Size(), len(c.book.Problems())
	stored, err := c.view.book(seq)
	if errors.Is(err, errAbsent) {
		return nil // the next writer rebuilds it
	}
	if err != nil {
		return c.log.corrupt(0, "mistake book", err)
	}
	if !bytes.Equal(stored.Encode(), c.book.Encode()) {
		return c.log.corrupt(0, "the stored mistake book does not follow from the events", nil)
	}
	return nil
}
