package replay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/dgraph-io/badger/v4"
)

// An event ID is a hash. An index with a key for each would fall all over its
// range, and cost a log of small events as much as the events. So the index is
// written by chunks, the IDs of many events in a row, in buckets by the first
// bits of the ID. Who looks for an ID reads one bucket of every chunk, which lie
// side by side. Events behind the last chunk are known in memory.

const (
	// chunkEvents is how many events a chunk has at least, unless the log was
	// closed. No more records are read when a log opens after a crash, or for
	// the first ID that a reader looks for.
	chunkEvents = 1 << 14
	// bucketBits is by how many bits of the ID a chunk is cut: 16 IDs a bucket.
	bucketBits = 10
)

// indexed is an event as the index has it.
type indexed struct {
	id  eventID
	seq uint64
}

const indexedBytes = len(eventID{}) + 8

func bucketOf(id eventID) uint16 { return binary.BigEndian.Uint16(id[:]) >> (16 - bucketBits) }

// bucketPrefix is what the keys of a bucket begin with, in all chunks.
func bucketPrefix(bucket uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{spaceIndex}, bucket)
}

// bucketKey is that of a bucket in the chunk that begins with event first.
func bucketKey(bucket uint16, first uint64) []byte {
	return binary.BigEndian.AppendUint64(bucketPrefix(bucket), first)
}

func appendIndexed(b []byte, e indexed) []byte {
	return binary.BigEndian.AppendUint64(append(b, e.id[:]...), e.seq)
}

// indexedIn goes through a bucket whose length is that of whole entries.
func indexedIn(value []byte) iter.Seq[indexed] {
	return func(yield func(indexed) bool) {
		for entry := range slices.Chunk(value, indexedBytes) {
			if !yield(indexed{eventID(entry[:len(eventID{})]), binary.BigEndian.Uint64(entry[len(eventID{}):])}) {
				return
			}
		}
	}
}

// bucket lends use what lies under a key of the index.
func (l *Log) bucket(item *badger.Item, use func(value []byte) error) error {
	err := item.Value(func(value []byte) error {
		// Badger logs why a value cannot be read, and returns nothing.
		if len(value) == 0 || len(value)%indexedBytes != 0 {
			return errRecord
		}
		return use(value)
	})
	if err != nil {
		return l.corruptIndex(item, err)
	}
	return nil
}

func (l *Log) corruptIndex(item *badger.Item, err error) error {
	return l.corrupt(0, fmt.Sprintf("index %x cannot be read", item.Key()), err)
}

// lookup returns where the event with an ID is.
func (l *Log) lookup(id eventID) (at place, ok bool, err error) {
	if err := l.loadRecent(); err != nil {
		return place{}, false, err
	}
	if at, ok := l.recent.find(id); ok {
		return at, true, nil
	}
	// The store as it is now: it has what has left the memory.
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	return l.lookupStored(txn, id)
}

// lookupStored is lookup among the events that chunks have.
func (l *Log) lookupStored(txn *badger.Txn, id eventID) (at place, ok bool, err error) {
	seq, err := l.findStored(txn, id)
	if err != nil || seq == 0 {
		return place{}, false, err
	}
	at, err = l.placeOf(txn, id, seq)
	return at, err == nil, err
}

func (l *Log) findStored(txn *badger.Txn, id eventID) (seq uint64, err error) {
	if l.format < formatWithChunks {
		return l.findSingle(txn, id)
	}
	it := txn.NewIterator(badger.IteratorOptions{Prefix: bucketPrefix(bucketOf(id))})
	defer it.Close()
	for it.Rewind(); it.Valid() && seq == 0; it.Next() {
		err := l.bucket(it.Item(), func(value []byte) error {
			for e := range indexedIn(value) {
				if e.id == id {
					seq = e.seq
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return seq, nil
}

// placeOf reads from the event itself what the index does not have.
func (l *Log) placeOf(txn *badger.Txn, id eventID, seq uint64) (place, error) {
	l.collecting.RLock()
	defer l.collecting.RUnlock()
	item, err := txn.Get(eventKey(seq))
	if err != nil {
		return place{}, l.corrupt(seq, "event is missing", err)
	}
	r, _, err := l.record(item)
	if err != nil {
		return place{}, err
	}
	if parseID(r.Message.ID) != id {
		return place{}, l.corrupt(seq, "another event stands where the index has "+id.String(), nil)
	}
	return place{seq, r.PayloadHash}, nil
}

// eachStored goes through the index up to event to, in the order of the buckets.
// An error of visit ends it.
func (l *Log) eachStored(txn *badger.Txn, to uint64, visit func(indexed) error) error {
	if l.format < formatWithChunks {
		return l.eachSingle(txn, visit)
	}
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceIndex}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		key := it.Item().Key()
		var stop error
		err := l.bucket(it.Item(), func(value []byte) error {
			for e := range indexedIn(value) {
				if !bytes.HasPrefix(key, bucketPrefix(bucketOf(e.id))) {
					return fmt.Errorf("%s is in the wrong bucket", e.id)
				}
				// A chunk whose end was not written does not count.
				if e.seq > to {
					continue
				}
				if stop = visit(e); stop != nil {
					break
				}
			}
			return nil
		})
		if err := errors.Join(err, stop); err != nil {
			return err
		}
	}
	return nil
}

// readIndexed returns up to which event chunks have the IDs, in a log that ends
// with event last.
func (l *Log) readIndexed(txn *badger.Txn, last uint64) (to uint64, err error) {
	if l.format < formatWithChunks {
		return last, nil
	}
	raw, err := get(txn, keyIndex)
	if err != nil {
		return 0, l.corrupt(0, "end of the index cannot be read", err)
	}
	if raw == nil {
		return 0, nil
	}
	if len(raw) != 8 || binary.BigEndian.Uint64(raw) > last {
		return 0, l.corrupt(0, fmt.Sprintf("the index ends at %x, the log with event %d", raw, last), nil)
	}
	return binary.BigEndian.Uint64(raw), nil
}

// loadRecent reads, once, the IDs of the events behind the last chunk.
func (l *Log) loadRecent() error {
	l.recentOnce.Do(func() { l.recentErr = l.readRecent() })
	return l.recentErr
}

func (l *Log) readRecent() error {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	var err error
	if l.indexed, err = l.readIndexed(txn, l.head.seq); err != nil || l.indexed == l.head.seq {
		return err
	}
	return l.scan(context.Background(), txn, ScanOptions{From: l.indexed + 1, To: l.head.seq}, func(item *badger.Item) (bool, error) {
		r, _, err := l.record(item)
		if err == nil {
			l.recent.add(parseID(r.Message.ID), place{r.Seq, r.PayloadHash})
		}
		return err == nil, err
	})
}

// storeChunk writes the IDs behind the last chunk as one, if they are enough or
// the log ends. What says that it is there comes last: a part of a chunk is
// written over by the next attempt, which begins with the same event. The caller
// holds l.committing.
func (l *Log) storeChunk(end bool) error {
	since := l.head.seq - l.indexed
	if since == 0 || !end && since < l.options.chunkEvents {
		return nil
	}
	chunk := l.recent.list()
	slices.SortFunc(chunk, func(a, b indexed) int { return bytes.Compare(a.id[:], b.id[:]) })
	err := l.writeChunk(l.indexed+1, l.head.seq, func(add func(indexed) error) error {
		for _, e := range chunk {
			if err := add(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store the index of log %s: %w", l.dir, err)
	}
	l.indexed = l.head.seq
	l.recent.turn()
	return nil
}

// writeChunk writes the chunk of events from first to last that each hands out in the
// order of their IDs.
func (l *Log) writeChunk(first, last uint64, each func(add func(indexed) error) error) error {
	batch := l.db.NewWriteBatch()
	defer batch.Cancel()
	var bucket uint16
	var value []byte
	write := func() error {
		if len(value) == 0 {
			return nil
		}
		defer func() { value = nil }() // the batch keeps it
		return batch.Set(bucketKey(bucket, first), value)
	}
	err := each(func(e indexed) error {
		if b := bucketOf(e.id); b != bucket {
			if err := write(); err != nil {
				return err
			}
			bucket = b
		}
		value = appendIndexed(value, e)
		return nil
	})
	if err == nil {
		err = write()
	}
	if err == nil {
		err = batch.Flush()
	}
	if err != nil {
		return err
	}
	return l.db.Update(func(txn *badger.Txn) error { return txn.Set(keyIndex, encodeSeq(last)) })
}
