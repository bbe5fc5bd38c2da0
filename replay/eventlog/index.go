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

// An event ID is a hash, so an index with one key for each event would write to
// random places of the store and slow down every append. The index is therefore
// written in chunks: the IDs of many consecutive events, in buckets by the first
// bits of the ID. A lookup reads one bucket of every chunk; these are adjacent
// keys. The events after the last chunk are in memory.

const (
	// chunkEvents is the minimum number of events in a chunk, except for the last
	// chunk before the log was closed. It bounds the records that are read when a
	// log opens after a crash, or at a reader's first lookup.
	chunkEvents = 1 << 14
	// bucketBits is the number of bits of the ID that choose the bucket: 16 IDs of
	// a chunk have the same.
	bucketBits = 10
)

// indexEntry maps an event ID to a sequence number.
type indexEntry struct {
	id  eventID
	seq uint64
}

const indexEntryBytes = len(eventID{}) + 8

func bucketOf(id eventID) uint16 { return binary.BigEndian.Uint16(id[:]) >> (16 - bucketBits) }

// bucketPrefix is the prefix of the keys of a bucket in all chunks.
func bucketPrefix(bucket uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{spaceIndex}, bucket)
}

// bucketKey is the key of a bucket in the chunk that begins with event first.
func bucketKey(bucket uint16, first uint64) []byte {
	return binary.BigEndian.AppendUint64(bucketPrefix(bucket), first)
}

func appendIndexEntry(b []byte, e indexEntry) []byte {
	return binary.BigEndian.AppendUint64(append(b, e.id[:]...), e.seq)
}

// readBucket calls use for the entries in a value of the index until it returns
// an error.
func (v view) readBucket(item *badger.Item, use func(e indexEntry) error) error {
	err := item.Value(func(value []byte) error {
		// For a value that it cannot read, Badger logs the reason and returns
		// nothing.
		if len(value) == 0 || len(value)%indexEntryBytes != 0 {
			return errRecord
		}
		for raw := range slices.Chunk(value, indexEntryBytes) {
			e := indexEntry{eventID(raw[:len(eventID{})]), binary.BigEndian.Uint64(raw[len(eventID{}):])}
			if err := use(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return v.log.corrupt(0, fmt.Sprintf("index %x cannot be read", item.Key()), err)
	}
	return nil
}

// lookup returns the sequence number of the event with an ID, 0 if there is
// none.
func (l *Log) lookup(id eventID) (seq uint64, err error) {
	if err := l.loadRecent(); err != nil {
		return 0, err
	}
	if k, ok := l.recent.find(id); ok {
		return k.seq, nil
	}
	// The current store has the chunk of the events that have left the memory.
	v := view{l, l.db.NewTransaction(false)}
	defer v.txn.Discard()
	return v.lookup(id)
}

// lookup returns the sequence number of the event with an ID in the chunks, 0 if
// there is none.
func (v view) lookup(id eventID) (seq uint64, err error) {
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: bucketPrefix(bucketOf(id))})
	defer it.Close()
	for it.Rewind(); it.Valid() && seq == 0; it.Next() {
		err := v.readBucket(it.Item(), func(e indexEntry) error {
			if e.id == id {
				seq = e.seq
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
func (v view) recordOf(id eventID, seq uint64) (Record, error) {
	v.log.collecting.RLock()
	defer v.log.collecting.RUnlock()
	item, err := v.event(seq)
	if err != nil {
		return Record{}, err
	}
	r, _, err := v.record(item)
	if err != nil {
		return Record{}, err
	}
	if parseID(r.Message.ID) != id {
		return Record{}, v.log.corrupt(seq, "the index has it under "+id.String()+", the ID of another event", nil)
	}
	return r, nil
}

// indexEntries yields the entries of the chunks up to event to, bucket by bucket.
// It ends after an error.
func (v view) indexEntries(to uint64) iter.Seq2[indexEntry, error] {
	return func(yield func(indexEntry, error) bool) {
		it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceIndex}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			key, stopped := it.Item().Key(), false
			err := v.readBucket(it.Item(), func(e indexEntry) error {
				if !bytes.HasPrefix(key, bucketPrefix(bucketOf(e.id))) {
					return fmt.Errorf("%s is in the wrong bucket", e.id)
				}
				// Entries of an unfinished chunk do not count.
				stopped = stopped || e.seq <= to && !yield(e, nil)
				return nil
			})
			if err != nil && !stopped {
				yield(indexEntry{}, err)
			}
			if err != nil || stopped {
				return
			}
		}
	}
}

// indexed returns the last event in a chunk, in a log that ends with event last.
func (v view) indexed(last uint64) (to uint64, err error) {
	raw, err := v.get(keyIndex)
	if err != nil {
		return 0, v.log.corrupt(0, "end of the index cannot be read", err)
	}
	if raw == nil {
		return 0, nil
	}
	if len(raw) != 8 || binary.BigEndian.Uint64(raw) > last {
		return 0, v.log.corrupt(0, fmt.Sprintf("the index ends at %x, the log with event %d", raw, last), nil)
	}
	return binary.BigEndian.Uint64(raw), nil
}

// loadRecent reads, once, the IDs of the events after the last chunk.
func (l *Log) loadRecent() error {
	l.recentOnce.Do(func() { l.recentErr = l.readRecent() })
	return l.recentErr
}

func (l *Log) readRecent() error {
	v := view{l, l.db.NewTransaction(false)}
	defer v.txn.Discard()
	var err error
	if l.indexed, err = v.indexed(l.head.seq); err != nil || l.indexed == l.head.seq {
		return err
	}
	return v.read(context.Background(), ReadOptions{From: l.indexed + 1, To: l.head.seq}, func(item *badger.Item) (bool, error) {
		r, _, err := v.record(item)
		if err == nil {
			l.recent.add(parseID(r.Message.ID), known{r.Seq, r.PayloadHash})
		}
		return err == nil, err
	})
}

// storeChunk writes the IDs after the last chunk as a new chunk, if there are
// enough or the log is closed. Its end is written last: the next try begins with
// the same event and overwrites an unfinished chunk. The caller holds
// l.committing.
func (l *Log) storeChunk(closing bool) error {
	since := l.head.seq - l.indexed
	if since == 0 || !closing && since < l.options.chunkEvents {
		return nil
	}
	if err := l.writeChunk(l.indexed+1, l.head.seq, l.recent.list()); err != nil {
		return fmt.Errorf("store the index of log %s: %w", l.dir, err)
	}
	l.indexed = l.head.seq
	l.recent.turn()
	return nil
}

// writeChunk writes the index entries of the events from first to last.
func (l *Log) writeChunk(first, last uint64, entries []indexEntry) error {
	slices.SortFunc(entries, func(a, b indexEntry) int { return bytes.Compare(a.id[:], b.id[:]) })
	batch := l.db.NewWriteBatch()
	defer batch.Cancel()
	for len(entries) > 0 {
		bucket := bucketOf(entries[0].id)
		var value []byte
		for len(entries) > 0 && bucketOf(entries[0].id) == bucket {
			value = appendIndexEntry(value, entries[0])
			entries = entries[1:]
		}
		if err := batch.Set(bucketKey(bucket, first), value); err != nil {
			return err
		}
	}
	if err := batch.Flush(); err != nil {
		return err
	}
	return l.db.Update(func(txn *badger.Txn) error { return txn.Set(keyIndex, encodeSeq(last)) })
}
