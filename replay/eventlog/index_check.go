package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// indexCheck proves exactly-once: the index has every event under its ID and
// nothing else, and no ID is there twice. It looks nothing up: it compares sums
// over both, and memory holds no more than the events behind the last chunk and
// the IDs of a bucket.
type indexCheck struct {
	log    *Log
	txn    *badger.Txn
	to     uint64             // up to where chunks have the IDs
	events sum                // of the events up to there
	behind map[eventID]uint64 // the events after it
}

// sum of what was added, in any order, tells one set of events from another.
type sum struct {
	n     uint64
	lanes [4]uint64
}

func (s *sum) add(e indexEntry) {
	h := hashOf(appendIndexEntry(make([]byte, 0, indexEntryBytes), e))
	for i := range s.lanes {
		s.lanes[i] += binary.LittleEndian.Uint64(h[8*i:])
	}
	s.n++
}

func (l *Log) newIndexCheck(txn *badger.Txn, last uint64) (*indexCheck, error) {
	to, err := l.readIndexed(txn, last)
	return &indexCheck{log: l, txn: txn, to: to, behind: make(map[eventID]uint64)}, err
}

// met takes an event of the log down, and tells of another with its ID.
func (c *indexCheck) met(e indexEntry) (first uint64, twice bool) {
	if e.seq <= c.to {
		c.events.add(e)
		return 0, false
	}
	if first, twice = c.behind[e.id]; !twice {
		c.behind[e.id] = e.seq
	}
	return first, twice
}

// finish compares the index with the events that were met.
func (c *indexCheck) finish(ctx context.Context) error {
	var index sum
	var bucket uint16
	ids := make(map[eventID]uint64) // of the bucket
	for e, err := range c.log.indexEntries(c.txn, c.to) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if b := bucketOf(e.id); b != bucket {
			bucket = b
			clear(ids)
		}
		first, twice := ids[e.id]
		if !twice {
			first, twice = c.behind[e.id]
		}
		if twice {
			return c.log.corrupt(max(first, e.seq), fmt.Sprintf("its id is that of event %d", min(first, e.seq)), nil)
		}
		ids[e.id] = e.seq
		index.add(e)
	}
	if index == c.events {
		return nil
	}
	return c.locate(ctx, &index)
}

// locate says where index and events differ.
func (c *indexCheck) locate(ctx context.Context, index *sum) error {
	err := c.log.scan(ctx, c.txn, ScanOptions{To: c.to}, func(item *badger.Item) (bool, error) {
		r, _, err := c.log.record(item)
		if err != nil {
			return false, err
		}
		seq, err := c.log.lookupStored(c.txn, parseID(r.Message.ID))
		if err == nil && seq != r.Seq {
			err = &CorruptError{Dir: c.log.dir, Seq: r.Seq, EventID: r.Message.ID, Reason: fmt.Sprintf("index of its id leads to event %d", seq)}
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return c.log.corrupt(0, fmt.Sprintf("index has %d events up to event %d, the log has %d", index.n, c.to, c.events.n), nil)
}
