package eventlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
	"codea1/replay/mistakes"
)

// A group.rewarded event is large, and the Mistake Book needs little of it. That
// part is also stored under a key of its own, so that the book is computed
// without decoding rewards.

// changesBook reports whether a rewarded group can change the Mistake Book.
func changesBook(r *events.GroupRewarded) bool {
	return r.Plan.Purpose == events.PurposeTrain && len(r.Deltas) > 0
}

// encodeDeltas returns a problem's ID and the changes of its tests.
func encodeDeltas(r *events.GroupRewarded) []byte {
	b := appendText(nil, r.ProblemID)
	for _, d := range r.Deltas {
		b = appendText(b, d.Call)
		b = appendText(b, d.Expected)
		b = binary.AppendVarint(b, int64(d.Change))
	}
	return b
}

// decodeDeltas is the inverse of encodeDeltas. The other fields of the group are
// empty.
func decodeDeltas(value []byte) (*events.GroupRewarded, error) {
	f := fields{rest: value}
	r := &events.GroupRewarded{Plan: events.Plan{Purpose: events.PurposeTrain}, ProblemID: f.text()}
	for len(f.rest) > 0 && !f.failed {
		d := events.BookDelta{Call: f.text(), Expected: f.text()}
		change, n := binary.Varint(f.rest)
		if n <= 0 || change > math.MaxInt || change < math.MinInt {
			f.failed = true
			break
		}
		d.Change, f.rest = int(change), f.rest[n:]
		r.Deltas = append(r.Deltas, d)
	}
	if f.failed {
		return nil, fmt.Errorf("%w: deltas of %d bytes", errRecord, len(value))
	}
	return r, nil
}

// bookAt returns the Mistake Book as it was after event seq.
func (v view) bookAt(ctx context.Context, seq uint64) (*mistakes.Book, error) {
	book := mistakes.New()
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceDeltas}})
	defer it.Close()
	n, read := 0, uint64(0)
	for it.Rewind(); it.Valid(); it.Next() {
		if n++; n%64 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		at, ok := seqOf(it.Item().Key())
		if !ok {
			return nil, v.log.corrupt(0, fmt.Sprintf("key %x is not an event's", it.Item().Key()), nil)
		}
		if at > seq {
			break
		}
		err := it.Item().Value(func(value []byte) error {
			r, err := decodeDeltas(value)
			if err == nil {
				book.Apply(r)
			}
			return err
		})
		if err != nil {
			return nil, v.log.corrupt(at, "changes of the mistake book cannot be read", err)
		}
		read = at
	}
	// Badger ends an iteration at a block that it cannot read without an error.
	if last := v.lastChange(seq); last > read {
		return nil, v.log.corrupt(last, fmt.Sprintf("changes of the mistake book after event %d cannot be read", read), nil)
	}
	return book, nil
}

// lastChange returns the last event up to event seq that changes the book.
func (v view) lastChange(seq uint64) uint64 {
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceDeltas}, Reverse: true})
	defer it.Close()
	if it.Seek(deltaKey(seq)); !it.Valid() {
		return 0
	}
	last, _ := seqOf(it.Item().Key())
	return last
}
