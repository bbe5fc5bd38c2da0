package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// indexCheck checks that the index has every event under its ID and nothing
// else, and that no ID occurs twice. It compares sums over index and events
// instead of looking up every ID. Memory holds the events after the last chunk
// and the IDs of one bucket.
type indexCheck struct {
	view   view
	to     uint64             // last event in a chunk
	events sum                // of the events up to there
	behind map[eventID]uint64 // the events after it
}

// sum identifies a set of index entries, in any order.
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

func (v view) newIndexCheck(last uint64) (*indexCheck, error) {
	to, err := v.indexed(last)
	return &indexCheck{view: v, to: to, behind: make(map[eventID]uint64)}, err
}

// add adds an event of the log. It returns the earlier event with the same ID,
// if it finds one.
func (c *indexCheck) add(e indexEntry) (first uint64, twice bool) {
	if e.seq <= c.to {
		c.events.add(e)
		return 0, false
	}
	if first, twice = c.behind[e.id]; !twice {
		c.behind[e.id] = e.seq
	}
	return first, twice
}

// finish compares the index with the events that were added.
func (c *indexCheck) finish(ctx context.Context) error {
	var index sum
	var bucket uint16
	ids := make(map[eventID]uint64) // of the bucket
	for e, err := range c.view.indexEntries(c.to) {
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
			return c.view.log.corrupt(max(first, e.seq), fmt.Sprintf("its id is that of event %d", min(first, e.seq)), nil)
		}
		ids[e.id] = e.seq
		index.add(e)
	}
	if index == c.events {
		return nil
	}
	return c.locate(ctx, &index)
}

// locate returns an error that names the first difference between index and
// events.
func (c *indexCheck) locate(ctx context.Context, index *sum) error {
	log := c.view.log
	err := c.view.read(ctx, ReadOptions{To: c.to}, func(item *badger.Item) (bool, error) {
		r, _, err := c.view.record(item)
		if err != nil {
			return false, err
		}
		seq, err := c.view.lookup(parseID(r.Message.ID))
		if err == nil && seq != r.Seq {
			err = &CorruptError{Dir: log.dir, Seq: r.Seq, EventID: r.Message.ID, Reason: fmt.Sprintf("index of its id leads to event %d", seq)}
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return log.corrupt(0, fmt.Sprintf("index has %d events up to event %d, the log has %d", index.n, c.to, c.events.n), nil)
}
