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

// Report is what Verify found in a log that is sound.
type Report struct {
	Events  uint64
	Chain   Hash // of the last event
	ByType  map[events.Type]uint64
	Refused uint64 // events left out because they descend from a payload that lost
	// Compacted payloads have lost their token ids and log-probs; what is left
	// is what the chain says it must be.
	Compacted uint64
	Tests     int // tests in the Mistake Book
	Problems  int // problems they belong to
}

// Verify reads the whole log and checks that its numbers have no gap, that
// every record links to the one before it, that every payload is the one that
// was appended, that every event is there once, and that the stored Mistake
// Book equals one made from the events. The first thing wrong is returned as a
// *CorruptError. progress, unless nil, hears how many of how many events are
// done. A log that is being written is checked as it stood at the call.
func (l *Log) Verify(ctx context.Context, progress func(done, total uint64)) (Report, error) {
	done, err := l.use()
	if err != nil {
		return Report{}, err
	}
	defer done()
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	end, err := l.readHead(txn)
	if err != nil {
		return Report{}, err
	}
	v := verifier{log: l, txn: txn, book: mistakes.New(), state: state.New(), report: Report{ByType: make(map[events.Type]uint64)}}
	if v.index, err = l.newIndexCheck(txn, end.seq); err != nil {
		return Report{}, err
	}
	if stored, at, err := l.readState(txn); err == nil { // another is made anew by the next writer
		v.stored, v.storedAt = stored.Encode(), at
	}
	err = l.scan(ctx, txn, ScanOptions{}, func(item *badger.Item) (bool, error) {
		if err := v.check(item); err != nil {
			return false, err
		}
		if progress != nil {
			progress(v.report.Events, end.seq)
		}
		return true, nil
	})
	if err != nil {
		return Report{}, err
	}
	if v.report.Events != end.seq {
		return Report{}, l.corrupt(v.report.Events+1, fmt.Sprintf("%d events, but the head says %d", v.report.Events, end.seq), nil)
	}
	if v.report.Chain != end.chain {
		return Report{}, l.corrupt(end.seq, "chain hash is not the one the log ends with", nil)
	}
	bare, err := l.readBare(txn)
	if err != nil {
		return Report{}, err
	}
	if v.report.Compacted != bare.events {
		return Report{}, l.corrupt(0, fmt.Sprintf("%d payloads are without tokens, %d have been compacted", v.report.Compacted, bare.events), nil)
	}
	if err := v.index.finish(ctx); err != nil {
		return Report{}, err
	}
	if err := v.checkKeys(ctx); err != nil {
		return Report{}, err
	}
	return v.report, v.checkBook(end.seq)
}

type verifier struct {
	log    *Log
	txn    *badger.Txn
	book   *mistakes.Book
	deltas uint64 // events with changes of the book
	index  *indexCheck
	report Report

	state    *state.State
	stored   []byte // the state that is stored, if it fits the log, and the event at which it stands
	storedAt uint64
}

func (v *verifier) check(item *badger.Item) error {
	r, value, err := v.log.record(item)
	if err != nil {
		return err
	}
	fail := func(reason string, err error) error {
		return &CorruptError{Dir: v.log.dir, Seq: r.Seq, EventID: r.Message.ID, Reason: reason, Err: err}
	}
	if chainOf(v.report.Chain, r.Seq, value[:r.chainEnd]) != r.Chain {
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
	if first, twice := v.index.met(indexEntry{parseID(r.Message.ID), r.Seq}); twice {
		return fail(fmt.Sprintf("its id is that of event %d", first), nil)
	}
	if err := v.fold(&r); err != nil {
		return fail("payload", err)
	}
	if r.Seq == v.storedAt && !bytes.Equal(v.stored, v.state.Encode()) {
		return fail("the state stored here is not the one that follows from the events", nil)
	}
	if r.Compacted {
		v.report.Compacted++
	}
	v.report.Events++
	v.report.Chain = r.Chain
	v.report.ByType[r.Message.Type]++
	return nil
}

// fold brings book and state past an event, and holds what is kept apart of it
// to what it says.
func (v *verifier) fold(r *Record) error {
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
		x.Changes = v.book.Apply(rewarded)
		if hasDeltas(rewarded) {
			v.deltas++
			kept, err := get(v.txn, deltaKey(r.Seq))
			if err != nil || !bytes.Equal(kept, encodeDeltas(rewarded)) {
				return errors.Join(errDeltas, err)
			}
		}
	}
	v.state.Apply(&x)
	return nil
}

var errDeltas = errors.New("changes of the mistake book kept apart are not the event's")

// checkKeys holds the spaces that a key tells of an event to the number of such
// events.
func (v *verifier) checkKeys(ctx context.Context) error {
	deltas, err := countKeys(ctx, v.txn, spaceDeltas)
	if err != nil {
		return err
	}
	if deltas != v.deltas {
		return v.log.corrupt(0, fmt.Sprintf("changes of the mistake book are kept for %d events, %d have some", deltas, v.deltas), nil)
	}
	v.report.Refused, err = countKeys(ctx, v.txn, spaceRefused)
	return err
}

func countKeys(ctx context.Context, txn *badger.Txn, space byte) (n uint64, err error) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if n%64 == 0 && ctx.Err() != nil {
			return n, ctx.Err()
		}
		n++
	}
	return n, nil
}

func (v *verifier) checkBook(seq uint64) error {
	v.report.Tests, v.report.Problems = v.book.Size(), len(v.book.Problems())
	stored, err := v.log.readBook(v.txn, seq)
	if errors.Is(err, errAbsent) {
		return nil // it is made anew when a writer opens the log
	}
	if err != nil {
		return v.log.corrupt(0, "mistake book", err)
	}
	if !bytes.Equal(stored.Encode(), v.book.Encode()) {
		return v.log.corrupt(0, "mistake book is not the one that follows from the events", nil)
	}
	return nil
}
