package eventlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/dgraph-io/badger/v4"
)

// An event ID is a hash: an index with a key for each would fall all over its
// range, and slow down every append. So the index is written by chunks, the IDs
// of many events in a row, in buckets by the first bits of the ID. Who looks for
// an ID reads one bucket of every chunk, which lie side by side. Events behind
// the last chunk are known in memory.

const (
	// chunkEvents is how many events a chunk has at least, unless the log was
	// closed. That many records, and a batch, are read at most when a log opens
	// after a crash, or for the first ID that a reader looks for.
	chunkEvents = 1 << 14
	// bucketBits is by how many bits of the ID a chunk is cut: 16 IDs a bucket.
	bucketBits = 10
)

// indexEntry is an event as the index has it.
type indexEntry struct {
	id  eventID
	seq uint64
}

const indexEntryBytes = len(eventID{}) + 8

func bucketOf(id eventID) uint16 { return binary.BigEndian.Uint16(id[:]) >> (16 - bucketBits) }

// bucketPrefix is what the keys of a bucket begin with, in all chunks.
func bucketPrefix(bucket uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{spaceIndex}, bucket)
}

// bucketKey is that of a bucket in the chunk that begins with event first.
func bucketKey(bucket uint16, first uint64) []byte {
	return binary.BigEndian.AppendUint64(bucketPrefix(bucket), first)
}

func appendIndexEntry(b []byte, e indexEntry) []byte {
	return binary.BigEndian.AppendUint64(append(b, e.id[:]...), e.seq)
}

// bucketEntries returns the entries of a bucket, whose length is that of whole
// ones.
func bucketEntries(value []byte) iter.Seq[indexEntry] {
	return func(yield func(indexEntry) bool) {
		for raw := range slices.Chunk(value, indexEntryBytes) {
			if !yield(indexEntry{eventID(raw[:len(eventID{})]), binary.BigEndian.Uint64(raw[len(eventID{}):])}) {
				return
			}
		}
	}
}

// readBucket lends use what lies under a key of the index.
func (l *Log) readBucket(item *badger.Item, use func(value []byte) error) error {
	err := item.Value(func(value []byte) error {
		// Badger logs why a value cannot be read, and returns nothing.
		if len(value) == 0 || len(value)%indexEntryBytes != 0 {
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

// lookup returns which event has an ID, 0 if none.
func (l *Log) lookup(id eventID) (seq uint64, err error) {
	if err := l.loadRecent(); err != nil {
		return 0, err
	}
	if at, ok := l.recent.find(id); ok {
		return at.seq, nil
	}
	// The store as it is now: it has what has left the memory.
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	return l.lookupStored(txn, id)
}

// lookupStored is lookup among the events that chunks have.
func (l *Log) lookupStored(txn *badger.Txn, id eventID) (seq uint64, err error) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: bucketPrefix(bucketOf(id))})
	defer it.Close()
	for it.Rewind(); it.Valid() && seq == 0; it.Next() {
		err := l.readBucket(it.Item(), func(value []byte) error {
			for e := range bucketEntries(value) {
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

// recordOf returns the event that the index has under an ID.
func (l *Log) recordOf(txn *badger.Txn, id eventID, seq uint64) (Record, error) {
	l.collecting.RLock()
	defer l.collecting.RUnlock()
	item, err := txn.Get(eventKey(seq))
	if err != nil {
		return Record{}, l.corrupt(seq, "event is missing", err)
	}
	r, _, err := l.record(item)
	if err != nil {
		return Record{}, err
	}
	if parseID(r.Message.ID) != id {
		return Record{}, l.corrupt(seq, "another event stands where the index has "+id.String(), nil)
	}
	return r, nil
}

// indexEntries returns the index up to event to, bucket by bucket. An error is
// the last thing it yields.
func (l *Log) indexEntries(txn *badger.Txn, to uint64) iter.Seq2[indexEntry, error] {
	return func(yield func(indexEntry, error) bool) {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceIndex}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			key, goOn := it.Item().Key(), true
			err := l.readBucket(it.Item(), func(value []byte) error {
				for e := range bucketEntries(value) {
					if !bytes.HasPrefix(key, bucketPrefix(bucketOf(e.id))) {
						return fmt.Errorf("%s is in the wrong bucket", e.id)
					}
					// A chunk whose end was not written does not count.
					if e.seq <= to && !yield(e, nil) {
						goOn = false
						break
					}
				}
				return nil
			})
			if err != nil {
				yield(indexEntry{}, err)
				return
			}
			if !goOn {
				return
			}
		}
	}
}

// readIndexed returns up to which event chunks have the IDs, in a log that ends
// with event last.
func (l *Log) readIndexed(txn *badger.Txn, last uint64) (to uint64, err error) {
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
	slices.SortFunc(chunk, func(a, b indexEntry) int { return bytes.Compare(a.id[:], b.id[:]) })
	if err := l.writeChunk(l.indexed+1, l.head.seq, chunk); err != nil {
		return fmt.Errorf("store the index of log %s: %w", l.dir, err)
	}
	l.indexed = l.head.seq
	l.recent.turn()
	return nil
}

// writeChunk writes the index of the events from first to last, whose entries
// come in the order of their IDs.
func (l *Log) writeChunk(first, last uint64, entries []indexEntry) error {
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
	for _, e := range entries {
		if b := bucketOf(e.id); b != bucket {
			if err := write(); err != nil {
				return err
			}
			bucket = b
		}
		value = appendIndexEntry(value, e)
	}
	if err := write(); err != nil {
		return err
	}
	if err := batch.Flush(); err != nil {
		return err
	}
	return l.db.Update(func(txn *badger.Txn) error { return txn.Set(keyIndex, encodeSeq(last)) })
}
